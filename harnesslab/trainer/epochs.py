"""The epochs: measure, diagnose, propose, evaluate, and the journal that lets them go on after an interrupt.

One epoch is one candidate. Proposals are queued; a promotion empties the queue, since the failures are others
now. The journal holds what cannot be found again in git and the runs: how many epochs are left, the queue,
and the proposal that is being measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harnesslab.errors import ConfigError, OrderError
from harnesslab.trainer.estimators.base import judged
from harnesslab.trainer.history import past_verdicts
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.proposal import Proposal

if TYPE_CHECKING:
    from harnesslab.trainer.trainer import Trainer

JOURNAL = "epochs"


class Epochs:
    """Makes losses, one an epoch, for one trainer."""

    def __init__(self, trainer: Trainer):
        self._trainer = trainer

    def start(self, count: int) -> Iterator[Loss]:
        """Start ``count`` epochs; forgets an older journal."""
        if count < 1:
            raise ConfigError(f"epochs takes a number of 1 or more, not {count}")
        return self._go({"total": count, "done": 0, "baseline": None, "queue": [], "current": None})

    def resume(self) -> Iterator[Loss]:
        """Go on from the journal."""
        state = self._trainer.lab.runs.journal_get(0, JOURNAL)
        if not state or state["done"] >= state["total"]:
            raise OrderError("no epochs were interrupted in this lab: start with trainer.epochs(n)")
        return self._go(state)

    def _go(self, state: dict[str, Any]) -> Iterator[Loss]:
        self._require_no_grad()
        # Before the first measurement, too, which is often the longest.
        self._put(state)
        while state["done"] < state["total"]:
            proposal = self._next(state)
            if proposal is None:
                break
            # Written before the measurement: a kernel that dies in it resumes with this very proposal.
            self._put(state)
            yield self._trainer.evaluate(proposal, epoch=state["done"] + 1)
            self._require_no_grad()
            state.update(done=state["done"] + 1, current=None)
            self._put(state)
        state["done"] = state["total"]
        self._put(state)

    def _next(self, state: dict[str, Any]) -> Proposal | None:
        """The proposal to measure now; ``None`` when the estimator has nothing left."""
        trainer = self._trainer
        baseline = trainer.lab.repo.baseline()
        current = state["current"]
        if current is not None and state["baseline"] == baseline:
            proposal = Proposal.from_json(current)
            # A kernel that died between the decision and the journal left a proposal that is judged already.
            if proposal.content not in judged(past_verdicts(trainer.lab.repo), baseline):
                return proposal
        if state["baseline"] != baseline or not state["queue"]:
            proposals = trainer.propose(trainer.diagnose(trainer.measure("search")))
            state.update(baseline=baseline, queue=[proposal.to_json() for proposal in proposals])
        if not state["queue"]:
            return None
        state["current"] = state["queue"].pop(0)
        return Proposal.from_json(state["current"])

    def _put(self, state: dict[str, Any]) -> None:
        self._trainer.lab.runs.journal_put(0, JOURNAL, state)

    def _require_no_grad(self) -> None:
        if self._trainer.harness.grad is not None:
            raise OrderError("the last loss was not acted on: call optimizer.step() after loss.backward()")
