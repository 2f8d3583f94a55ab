"""The loss: a candidate beside its baseline, judged. ``float(loss) < 0`` selects the candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnesslab.errors import OrderError
from harnesslab.ledger import Choice, Verdict, reason_given
from harnesslab.plaintext import counted
from harnesslab.trainer.parameter import Gradient, Parameter

if TYPE_CHECKING:
    from harnesslab.analysis.effects import Effects
    from harnesslab.rollout.records import Run
    from harnesslab.trainer.desk import Desk
    from harnesslab.trainer.proposal import Proposal


class Loss:
    """The result of one evaluation. Displays itself; ``backward()`` puts its verdict on the parameter."""

    def __init__(
        self,
        parameter: Parameter,
        candidate: str,
        verdict: Verdict,
        *,
        proposal: Proposal,
        baseline: Run,
        measured: Run,
        epoch: int | None = None,
    ):
        """``candidate`` is the id in the store; ``baseline`` and ``measured`` are the two runs."""
        self.parameter, self.candidate, self.verdict = parameter, candidate, verdict
        self.proposal, self.baseline, self.measured, self.epoch = proposal, baseline, measured, epoch
        self.trainer: Desk[Proposal, Loss] | None = None
        """Whose loss this is; set by :meth:`Trainer.evaluate`."""
        self.effects: Effects | None = None
        """The effects that a screening estimated, the candidate's own among them."""
        self.judged = verdict
        """The criterion's own verdict, whatever a person decides."""

    def __float__(self) -> float:
        return self.verdict.value

    def __lt__(self, other: float) -> bool:
        return float(self) < float(other)

    def __gt__(self, other: float) -> bool:
        return float(self) > float(other)

    def backward(self) -> None:
        """Put the verdict on ``parameter.grad``, where ``optimizer.step()`` finds it.

        Raises OrderError when another verdict already waits there.
        """
        waiting = self.parameter.grad
        if waiting is not None and waiting.candidate != self.candidate:
            raise OrderError(
                f"the verdict on candidate {waiting.candidate} is still waiting: call optimizer.step() first, "
                "or parameter.zero_grad() to leave it pending"
            )
        self.parameter.grad = Gradient(self.candidate, self.verdict, self, self.effects)

    def decide(self, decision: Choice, why: str, who: str) -> None:
        """Let a person decide: the same measurement, recorded with name, time and reason.

        Raises ConfigError without a reason: a person's verdict is data.
        """
        # Always from the criterion's own verdict: a decision that was undone, or failed to be written, is no part of it.
        self.verdict = self.judged.by_person(decision, who, reason_given(why))

    def __repr__(self) -> str:
        verdict = self.verdict
        before, after, tasks = verdict.counts or (0, 0, 0)
        early = ", stopped early" if verdict.settled_early else ""
        return (
            f"Loss({self.verdict.value:+.3g}: {self.proposal.name} -> {verdict.decision}; "
            f"solved {before} -> {after} of {counted(tasks, 'task')}{early}; {verdict.why}"
            + (f"; {verdict.could_show})" if verdict.could_show else ")")
        )

    def _repr_html_(self) -> str:
        from harnesslab.analysis.show import verdict_html

        return str(verdict_html(self.verdict, title=self.proposal.name))
