"""The limit on calls is exact: whatever is played at once, in however many kernels."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import harnesslab as hl
from harnesslab.errors import BudgetExceeded
from harnesslab.llm import Completion


class Slow:
    """Counts its calls; several are in flight at once."""

    constrains = False
    concurrency = 4
    identity: ClassVar[dict[str, str]] = {"model": "slow"}

    def __init__(self) -> None:
        self.calls = self.ended = 0

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        self.calls += 1
        await asyncio.sleep(0.02)
        self.ended += 1
        return Completion("Action: left", model="slow", prompt_tokens=5, completion_tokens=5)


def spend_all(lab: hl.Lab, seed: int = 0, **limits: Any) -> Slow:
    """Measure until the budget is used up."""
    backbone = Slow()
    trainer = hl.Trainer(lab, backbone, settings={"progress": False, "seed": seed, **limits})
    with pytest.raises(BudgetExceeded):
        for _ in range(50):
            trainer.measure(fresh=True)
    assert backbone.ended == backbone.calls, "calls in flight finish"
    return backbone


@pytest.mark.parametrize("limit", [1, 3, 7, 30])
def test_one_kernel_makes_as_many_calls_as_it_may(open_lab: Callable[..., Any], limit: int) -> None:
    lab = open_lab()
    assert spend_all(lab, max_calls=limit).calls == limit
    assert spend_all(lab, seed=1).calls == 0, "the next trainer has nothing left"
    assert spend_all(lab, seed=2, max_calls=limit + 2).calls == 2


def test_several_samples_are_taken_out_of_the_budget_together(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    changed = lab.repo.propose({"action/more.yaml": "kind: rerank\nparams: {samples: 3}\n"}, "x").commit
    backbone = Slow()
    trainer = hl.Trainer(lab, backbone, settings={"progress": False, "max_calls": 8})
    with pytest.raises(BudgetExceeded):
        trainer.measure(commit=changed)
    assert backbone.calls == 6


def test_two_kernels_share_the_calls(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab = open_lab()
    program = (
        "import sys, harnesslab as hl; from tests.trainer.test_shared_budget import spend_all\n"
        "from tests.worlds import CorridorWorld\n"
        "lab = hl.Lab.open(sys.argv[1], env=CorridorWorld())\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(spend_all(lab, int(sys.argv[2]), max_calls=40).calls)\n"
    )
    kernels = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program, str(lab.path), str(seed)],
            cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for seed in (1, 2)
    ]  # fmt: skip
    for kernel in kernels:
        assert kernel.stdout is not None
        first = kernel.stdout.readline()
        assert first == "ready\n", first + kernel.communicate()[0]
    for kernel in kernels:
        assert kernel.stdin is not None
        kernel.stdin.write("go\n")
        kernel.stdin.flush()
    calls = [int(kernel.communicate(timeout=120)[0]) for kernel in kernels]
    assert sum(calls) == 40 and all(kernel.returncode == 0 for kernel in kernels)
    trainer = hl.Trainer(lab, Slow(), settings={"progress": False})
    assert trainer.meter.usage().calls == 40


def test_what_a_killed_kernel_had_in_flight_counts_as_made(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    trainer = hl.Trainer(lab, Slow(), settings={"progress": False, "max_calls": 10})
    trainer.meter.begin(4)  # and it never comes back
    other = hl.Trainer(lab, Slow(), settings={"progress": False})
    assert other.meter.usage().calls == 4
    assert spend_all(lab, seed=1).calls == 6
