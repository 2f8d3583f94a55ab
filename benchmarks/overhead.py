"""Overhead of the loop: a null model in a null environment, records written, beside Inspect AI's mock model.

Both play the same number of samples and steps in the same run, in turns, so that a machine that drifts drifts for
both; the ratio of each pair counts. Inspect AI is not a dependency: where it is not installed, only our own
figure is printed. Run: python benchmarks/overhead.py [--samples 100] [--steps 20] [--pairs 5]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import harnesslab as hl
from harnesslab.rollout.env import Action, Policy, Split, Task, TextEnv

INFO = {"public": {"instruction": "Go on.", "admissible": ["on"]}, "private": {"solved": False, "progress": 0.0}}

INSPECT = """
import sys, time
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, TaskState, solver
from inspect_ai.scorer import includes
samples, steps, log_dir = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
@solver
def loop():
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        from inspect_ai.model import ChatMessageUser
        for _ in range(steps):
            state = await generate(state)
            state.messages = state.messages[-8:] + [ChatMessageUser(content="Go on.")]
        return state
    return solve
def outputs():
    while True:
        output = ModelOutput.from_content("mockllm/model", "Action: on")
        # With its usage given, Inspect need not count tokens, for which it would download a vocabulary.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        yield output
task = Task(dataset=[Sample(input="Go on.", target="x") for _ in range(samples)], solver=loop(), scorer=includes())
model = get_model("mockllm/model", custom_outputs=outputs())
started = time.perf_counter()
log = eval(task, model=model, log_dir=log_dir, display="none")[0]
assert log.status == "success", log.error
print(time.perf_counter() - started)
"""


class Null:
    """Says the same in every step and never ends by itself."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
        return "Go on.", INFO

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        return "Go on.", 0.0, False, False, INFO

    def close(self) -> None:
        return


class NullWorld:
    """As many equal tasks as asked for."""

    name, version = "null", "1"

    def __init__(self, samples: int, steps: int):
        self.samples, self.max_steps = samples, steps

    def tasks(self, split: Split) -> list[Task]:
        return [Task(f"{split}-{n}", split, "null", seed=n) for n in range(self.samples)]

    def make(self) -> TextEnv:
        return Null()

    def oracle(self, task: Task) -> Policy:
        return lambda observation, info: "on"

    def starter(self) -> Path:
        return Path(__file__).parent / "null_starter"


def ours(samples: int, steps: int) -> float:
    """Seconds to play and store all samples."""
    with tempfile.TemporaryDirectory() as folder:
        lab = hl.Lab.open(Path(folder) / "lab", env=NullWorld(samples, steps))
        trainer = hl.Trainer(lab, hl.LLM.null("Action: on"), settings={"progress": False})
        started = time.perf_counter()
        run = trainer.measure()
        spent = time.perf_counter() - started
        assert len(run) == samples and all(episode.length == steps for episode in run)
        assert len(lab.load_steps(lab.run(run.id).episodes[-1]).steps) == steps
        lab.close()
    return spent


def inspect(samples: int, steps: int) -> float | None:
    """Seconds that Inspect AI reports for the same; None where it is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", INSPECT, str(samples), str(steps), folder], capture_output=True, text=True
        )
    if "No module named 'inspect_ai'" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f"Inspect AI failed: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    ours(10, options.steps)  # warm-up: imports
    pairs = [
        (ours(options.samples, options.steps), inspect(options.samples, options.steps)) for _ in range(options.pairs)
    ]
    count = options.samples * options.steps
    mine = statistics.median(1e6 * a / count for a, _ in pairs)
    print(f"| {options.samples} samples x {options.steps} steps | us a step, median of {options.pairs} |")
    print("|---|---|")
    print(f"| harnesslab, null model, records written | {mine:.0f} |")
    others = [(a, b) for a, b in pairs if b is not None]
    if others:
        ratios = sorted(b / a for a, b in others)
        print(f"| Inspect AI, mockllm/model | {statistics.median(1e6 * b / count for _, b in others):.0f} |")
        print(
            f"| ratio, pair by pair (min / median / max) | {ratios[0]:.1f} / {statistics.median(ratios):.1f} / {ratios[-1]:.1f} |"
        )
    else:
        print("| Inspect AI | not installed: pip install inspect-ai |")


if __name__ == "__main__":
    main()
