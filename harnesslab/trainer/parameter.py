"""The trained parameter: the harness, as a git commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnesslab.analysis.effects import Effects
    from harnesslab.lab import Lab
    from harnesslab.ledger import Verdict


@dataclass(slots=True)
class Gradient:
    """What ``loss.backward()`` leaves behind: a verdict on a candidate."""

    candidate: str
    """The candidate's id in the store."""
    verdict: Verdict
    loss: object = None
    """The :class:`~harnesslab.trainer.loss.Loss` that it comes from; None for a decision without a measurement."""
    effects: Effects | None = None
    """The estimated effect of each intervention that was screened with it, where there was a screening."""


class Parameter:
    """The harness of a lab.

    ``data`` is the baseline's commit. ``grad`` is the verdict that waits for ``optimizer.step()``, or ``None``.
    ``applied`` says what the last step did: true for a fast-forward, false for a rejection, ``None`` before any.
    """

    def __init__(self, lab: Lab):
        self.lab = lab
        self.grad: Gradient | None = None
        self.applied: bool | None = None

    @property
    def data(self) -> str:
        """The commit at the branch head; read each time, since the sidebar may move it."""
        return self.lab.repo.baseline()

    def zero_grad(self) -> None:
        """Forget a verdict that was not acted on; it stays in the store as a pending candidate."""
        self.grad = None

    def __repr__(self) -> str:
        state = "no verdict waits" if self.grad is None else f"grad: {self.grad.verdict.decision}"
        return f"Parameter(data={self.data[:10]}, {state}, applied={self.applied})"
