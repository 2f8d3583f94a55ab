"""The parameter that is trained: the harness, as a git commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnesslab.lab import Lab
    from harnesslab.ledger import Verdict


@dataclass(slots=True)
class Gradient:
    """What ``loss.backward()`` leaves behind: a verdict on a candidate."""

    candidate: str
    """The candidate's id in the store."""
    verdict: Verdict


class Parameter:
    """The harness of a lab.

    ``data`` is the baseline's commit. ``grad`` is the verdict that waits for ``optimizer.step()``, or ``None``.
    ``applied`` tells what the last step did: true for a fast-forward, false for a rejection, ``None`` before any.
    """

    def __init__(self, lab: Lab):
        self.lab = lab
        self.grad: Gradient | None = None
        self.applied: bool | None = None

    @property
    def data(self) -> str:
        """The commit at the branch head; read anew each time, since a sidebar may move it."""
        return self.lab.repo.baseline()

    def zero_grad(self) -> None:
        """Forget a verdict that was not acted on; it stays in the store as a pending candidate."""
        self.grad = None

    def __repr__(self) -> str:
        state = "no verdict waits" if self.grad is None else f"grad: {self.grad.verdict.decision}"
        return f"Parameter(data={self.data[:10]}, {state}, applied={self.applied})"
