"""A person's decision takes the same path as a criterion's: a verdict, ``backward``, ``step``."""

from __future__ import annotations

from harnesslab.errors import ConfigError, OrderError
from harnesslab.lab import Lab
from harnesslab.ledger import Choice, persons_verdict, reason_given
from harnesslab.trainer.evaluate import make_candidate
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.optimizer import Optimizer
from harnesslab.trainer.parameter import Gradient, Parameter
from harnesslab.trainer.proposal import Proposal


class Decider:
    """Acts for a person."""

    def __init__(self, lab: Lab, parameter: Parameter, optimizer: Optimizer):
        self._lab, self._parameter, self._optimizer = lab, parameter, optimizer

    def decide(self, what: Loss | Proposal, decision: Choice, reason: str, who: str) -> bool:
        """Promote or reject; returns whether the baseline moved. Raises ConfigError without a reason."""
        reason = reason_given(reason)
        kept = what.verdict if isinstance(what, Loss) else None
        try:
            self._put(what, decision, reason, who)
            return self._step()
        except BaseException:
            # What was not carried out does not belong to the loss: backward() must not pass it on later.
            if isinstance(what, Loss) and kept is not None:
                what.verdict = kept
            raise

    def _put(self, what: Loss | Proposal, decision: Choice, reason: str, who: str) -> None:
        """The person's verdict on the parameter, where the optimizer finds it."""
        if isinstance(what, Loss):
            what.decide(decision, reason, who)
            what.backward()
        elif isinstance(what, Proposal):
            waiting = self._parameter.grad
            if waiting is not None:
                raise OrderError(
                    f"the verdict on candidate {waiting.candidate} is still waiting: call optimizer.step() first"
                )
            candidate = make_candidate(self._lab, what, "")
            self._parameter.grad = Gradient(candidate.id, persons_verdict(candidate, decision, who, reason))
        else:
            raise ConfigError(f"promote and reject take a Loss or a Proposal, not {type(what).__name__}")

    def _step(self) -> bool:
        before = self._lab.repo.baseline()
        try:
            # Whether the baseline moved is read from git: an optimizer may be anybody's code.
            self._optimizer.step()
            return self._lab.repo.baseline() != before
        except BaseException:
            # The verdict does not wait for a step that a person did not ask for by name.
            self._parameter.grad = None
            raise

    def undo(self, candidate_id: str | None, who: str) -> None:
        """Take a decision back; the last one unless a candidate is named."""
        if candidate_id is None:
            self._lab.ledger.undo_last(who)
        else:
            self._lab.ledger.undo(candidate_id)
