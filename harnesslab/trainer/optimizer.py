"""The optimizer acts on the verdict: fast-forward, reject or shelve. Never anything else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harnesslab.errors import HarnesslabError, OptimizerFault, OrderError
from harnesslab.ledger import Choice, Verdict
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.parameter import Parameter


class Optimizer:
    """Acts on ``parameter.grad``. Derive from it and write :meth:`should_promote`::

        class AtLeastTwo(hl.Optimizer):
            def should_promote(self, loss):
                return float(loss) <= -2

    A candidate that is not promoted is kept under its rejected ref; one whose verdict is undecided stays where it is, with
    its verdict noted. A person's decision is carried out without asking the optimizer.
    """

    def __init__(self, parameter: Parameter | None = None):
        self._parameter = parameter

    def bind(self, parameter: Parameter) -> None:
        """Set the parameter to act on. The Trainer calls this."""
        self._parameter = parameter

    def should_promote(self, loss: Loss) -> bool:
        """Whether the measured candidate becomes the baseline; by default, what the criterion decided."""
        return loss.judged.decision == "promote"

    def step(self) -> bool:
        """Act on the waiting verdict; true if the baseline moved.

        A decision against the criterion is recorded as the optimizer's. Raises OrderError when no verdict waits,
        BaselineMoved when the candidate was measured against another baseline than the present one, OptimizerFault when
        ``should_promote`` fails; nothing is changed then, and the verdict still waits.
        """
        parameter = self._parameter
        if parameter is None:
            raise OrderError("the optimizer has no parameter: pass it to a Trainer, or call optimizer.bind(parameter)")
        if parameter.grad is None:
            raise OrderError("no verdict is waiting: call loss.backward() before optimizer.step()")
        grad = parameter.grad
        verdict, loss = grad.verdict, grad.loss
        if isinstance(loss, Loss) and verdict.decided_by == "criterion":
            verdict = self._decided(loss)
        parameter.lab.ledger.act_on(grad.candidate, verdict)
        if isinstance(loss, Loss):
            loss.verdict = verdict
        parameter.applied = verdict.decision == "promote"
        parameter.grad = None
        return parameter.applied

    def _decided(self, loss: Loss) -> Verdict:
        """The verdict of the loss with what the optimizer makes of it."""
        name, verdict = type(self).__name__, loss.judged
        try:
            promote: Any = self.should_promote(loss)
        except HarnesslabError:
            raise
        except Exception as error:
            raise OptimizerFault(f"{name}.should_promote raised {type(error).__name__}: {error}") from error
        # numpy's own truth values will do, too.
        if type(promote).__name__ not in ("bool", "bool_"):
            raise OptimizerFault(f"{name}.should_promote must return True or False, not {promote!r:.60}")
        decision: Choice = "promote" if promote else "undecided" if verdict.decision == "undecided" else "reject"
        if decision == verdict.decision:
            return verdict
        said = f"{name} chose to {decision} against {verdict.criterion}: {verdict.why}"
        return replace(verdict, decision=decision, who=name, why=said)


class GreedyMonotonic(Optimizer):
    """Fast-forwards the baseline to a selected candidate; keeps any other under its rejected ref.

    An undecided candidate stays where it is, with its verdict noted: nothing is thrown away and nothing is promoted
    on a measurement that could not tell.
    """
