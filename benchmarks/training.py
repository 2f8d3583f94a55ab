"""Trains a harness on a benchmark and prints the held-out table; goes on where an earlier call was stopped.

All episodes are stored as they end, in the lab named by --lab, and all completions in the recording beside it, so the
same call again continues. The result is written to benchmarks/results/NAME.json and printed as a table.

    python benchmarks/training.py kitchen --lab labs/bench-kitchen
    python benchmarks/training.py babyai --lab labs/bench-babyai --base-url http://127.0.0.1:8080/v1

Plans: see PLANS.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
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
    without: tuple[str, ...] = ()
    """Miners that are left out."""


PLANS = {
    "kitchen": Plan(
        "kitchen",
        "smollm2-135m",
        {"search": 15, "gate": 15, "sealed": 40},
        hl.NetSolve(metrics=("progress", "invalid", "steps"), tie_alpha=None),
        epochs=16,
        llm={"max_tokens": 24, "cache_prompt": True},
    ),
    # INSERT and UPDATE are left out, as the target counts questions; four steps, since CPU time is short.
    "dbbench": Plan(
        "dbbench",
        "qwen2.5-coder-0.5b",
        {
            "search": 15,
            "gate": 16,
            "sealed": 60,
            "budget": 4,
            "families": (
                *("aggregation-AVG", "aggregation-MAX", "aggregation-MIN", "aggregation-SUM"),
                *("comparison", "counting", "other", "ranking"),
            ),
        },
        hl.NetSolve(metrics=("progress", "invalid", "steps"), tie_alpha=None),
        epochs=12,
        llm={"max_tokens": 72, "cache_prompt": True},
    ),
    # The six levels that the bot does in the fewest steps: at most 13 on the search and gate tasks.
    # No rerank here and below: it draws several replies a step, for which there is no CPU time.
    "babyai": Plan(
        "babyai",
        "qwen2.5-coder-0.5b",
        {
            "search": 12,
            "gate": 12,
            "sealed": 24,
            "budget": 14,
            "families": (
                *("BabyAI-GoToLocal-v0", "BabyAI-GoToDoor-v0", "BabyAI-ActionObjDoor-v0"),
                *("BabyAI-PickupLoc-v0", "BabyAI-PickupDist-v0", "MiniGrid-Empty-Random-6x6-v0"),
            ),
        },
        hl.NetSolve(metrics=("invalid", "steps")),
        epochs=8,
        llm={"max_tokens": 16, "cache_prompt": True},
        without=("rerank",),
    ),
    # The two types with the shortest walkthroughs, in 16 of the official 50 steps, since CPU time is short. Failures
    # use up the budget, so a tie is not decided by steps here, nor in bfcl, where giving up early saves steps.
    "alfworld": Plan(
        "alfworld",
        "qwen2.5-coder-0.5b",
        {
            "search": 6,
            "gate": 8,
            "sealed": 12,
            "budget": 16,
            "families": ("look_at_obj_in_light", "pick_and_place_simple"),
        },
        hl.NetSolve(metrics=("invalid",)),
        epochs=8,
        llm={"max_tokens": 24, "cache_prompt": True},
        without=("rerank",),
    ),
    # One category of four, since reading the tools takes most of the time.
    "bfcl": Plan(
        "bfcl",
        "qwen2.5-coder-0.5b",
        {"search": 6, "gate": 6, "sealed": 12, "budget": 10, "families": ("base",)},
        hl.NetSolve(metrics=("progress", "invalid")),
        epochs=1,
        llm={"max_tokens": 80, "cache_prompt": True},
        without=("rerank",),
    ),
}


def train(name: str, lab_folder: Path, epochs: int | None, base_url: str | None) -> hl.Trainer:
    """Train until the epochs are used up, or nothing is left to propose.

    ``base_url``: an OpenAI-compatible server that serves the plan's model, in place of the embedded one.
    """
    plan = PLANS[name]
    settings = dict(plan.settings)
    lab = hl.Lab.open(lab_folder, env=plan.env)
    recording = lab_folder.with_name(f"{lab_folder.name}.jsonl")
    llm: Any
    if base_url:
        settings["workers"] = 2  # a server may answer two at once; the embedded model does not
        # A long prompt on a busy core takes minutes; a request that is given up and sent again is computed twice.
        slow = hl.Connection(timeout=600, patience=1800)
        llm = hl.LLM(plan.model, base_url, "none", max_tokens=plan.llm["max_tokens"], cache=recording, connection=slow)
    else:
        llm = hl.LLM.local(plan.model, cache=recording, **plan.llm)
    miners = {name: miner for name, miner in hl.MiningEstimator().miners.items() if name not in plan.without}
    trainer = hl.Trainer(
        lab, llm, hl.MiningEstimator(miners=miners, rank="expected flips"), plan.criterion, settings=settings
    )
    for loss in () if epochs == 0 else _losses(trainer, epochs or plan.epochs):
        loss.backward()
        trainer.optimizer.step()
        print(repr(loss), flush=True)
    return trainer


def _losses(trainer: hl.Trainer, epochs: int) -> Iterator[hl.Loss]:
    """The losses that an earlier call, stopped inside an epoch, left; else those of new epochs."""
    try:
        return trainer.resume()
    except OrderError:
        return trainer.epochs(epochs)


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
