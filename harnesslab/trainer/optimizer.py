"""The optimizer acts on the verdict: fast-forward, or reject. Never anything else."""

from __future__ import annotations

from typing import Protocol

from harnesslab.errors import OrderError
from harnesslab.trainer.parameter import Parameter


class Optimizer(Protocol):
    """Acts on ``parameter.grad``."""

    def bind(self, parameter: Parameter) -> None:
        """Say which parameter to act on; the Trainer does it."""
        ...

    def step(self) -> bool:
        """Act on the waiting verdict; true if the baseline moved."""
        ...


class GreedyMonotonic:
    """Fast-forwards the baseline to a selected candidate; keeps any other under its rejected ref.

    An undecided candidate stays where it is, with its verdict noted: nothing is thrown away and nothing is promoted
    on a measurement that could not tell.
    """

    def __init__(self, parameter: Parameter | None = None):
        self._parameter = parameter

    def bind(self, parameter: Parameter) -> None:
        """Say which parameter to act on; the Trainer does it."""
        self._parameter = parameter

    def step(self) -> bool:
        """Act on the waiting verdict; true if the baseline moved.

        Raises OrderError when no verdict waits, BaselineMoved when the candidate was measured against another
        baseline than the present one (nothing is changed then, and the verdict still waits).
        """
        parameter = self._parameter
        if parameter is None:
            raise OrderError("the optimizer has no parameter: hand it to a Trainer, or call optimizer.bind(parameter)")
        if parameter.grad is None:
            raise OrderError("no verdict waits on the harness: call loss.backward() before optimizer.step()")
        grad = parameter.grad
        parameter.lab.ledger.act_on(grad.candidate, grad.verdict)
        parameter.applied = grad.verdict.decision == "promote"
        parameter.grad = None
        return parameter.applied
