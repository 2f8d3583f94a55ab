"""Trains a harness on a benchmark and prints the held-out table; goes on where an earlier call was stopped.

All episodes are stored as they end, in the lab named by --lab, and all completions in the recording beside it, so the
same call again continues. The result is written to benchmarks/results/NAME.json and printed as a table.

    python benchmarks/training.py kitchen --lab labs/bench-kitchen
    python benchmarks/training.py dbbench --lab labs/bench-dbbench
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harnesslab as hl
from harnesslab.errors import OrderError

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Plan:
    """What is trained and how much of it is measured."""

    env: str
    model: str
    settings: dict[str, Any]
    criterion: Any
    epochs: int
    llm: dict[str, Any] = field(default_factory=dict)


PLANS = {
    "kitchen": Plan(
        "kitchen",
        "smollm2-135m",
        {"search": 15, "gate": 15, "sealed": 40},
        hl.NetSolve(metrics=("progress", "invalid", "steps")),
        epochs=16,
        llm={"max_tokens": 24, "cache_prompt": True},
    ),
    # INSERT and UPDATE are left out, as the target counts questions; four steps, since CPU time is short.
    "dbbench": Plan(
        "dbbench",
        "qwen2.5-coder-0.5b",
        {"search": 15, "gate": 16, "sealed": 60, "budget": 4},
        hl.NetSolve(metrics=("progress", "invalid", "steps")),
        epochs=12,
        llm={"max_tokens": 72, "cache_prompt": True},
    ),
}


def train(name: str, lab_folder: Path, epochs: int | None, base_url: str | None) -> hl.Trainer:
    """Train until the epochs are used up, or nothing is left to propose.

    ``base_url``: an OpenAI-compatible server that serves the plan's model, in place of the embedded one.
    """
    plan = PLANS[name]
    settings = dict(plan.settings)
    lab = hl.Lab.open(lab_folder, env=plan.env)
    if name == "dbbench":
        families = {task.family for task in lab.environment.tasks("search")}
        settings["families"] = tuple(sorted(family for family in families if family not in ("INSERT", "UPDATE")))
    recording = lab_folder.with_name(f"{lab_folder.name}.jsonl")
    llm: Any
    if base_url:
        settings["workers"] = 2  # a server may answer two at once; the embedded model does not
        llm = hl.LLM(plan.model, base_url, "none", max_tokens=plan.llm["max_tokens"], cache=recording)
    else:
        llm = hl.LLM.local(plan.model, cache=recording, **plan.llm)
    trainer = hl.Trainer(lab, llm, hl.MiningEstimator(), plan.criterion, settings=settings)
    try:
        losses = trainer.resume()  # an earlier call was stopped inside an epoch: go on there
    except OrderError:
        losses = iter(()) if epochs == 0 else trainer.epochs(epochs or plan.epochs)
    for loss in losses:
        loss.backward()
        trainer.optimizer.step()
        print(repr(loss), flush=True)
    return trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PLANS)
    parser.add_argument("--lab", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=None, help="candidates at most; 0: only open the sealed split")
    parser.add_argument("--base-url", default=None, help="an OpenAI-compatible server in place of the embedded model")
    options = parser.parse_args()
    trainer = train(options.name, options.lab, options.epochs, options.base_url)
    print(trainer.lab.log(), flush=True)
    print(trainer.lab.rejected(), flush=True)
    table = trainer.open_sealed()
    print(table)
    RESULTS.mkdir(exist_ok=True)
    result = {
        "plan": {"env": trainer.lab.environment.name, "version": trainer.lab.environment.version,
                 "backbone": trainer.llm.identity, "settings": trainer.settings.model_dump(mode="json")},
        "log": trainer.lab.log().rows,
        "rejected": trainer.lab.rejected(limit=200).rows,
        "sealed": table.rows,
        "notes": table.notes,
    }  # fmt: skip
    (RESULTS / f"{options.name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
