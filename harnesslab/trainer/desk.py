"""The desk: where a proposal is measured and decided on. All that a panel, or any other view, needs of a Trainer."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from harnesslab.lab import Lab
from harnesslab.rollout.progress import Bar

P = TypeVar("P", contravariant=True)
L = TypeVar("L")


class Desk(Protocol[P, L]):
    """A :class:`~harnesslab.Trainer`, as a view sees it: ``Desk[Proposal, Loss]``.

    The two parameters keep this module below those of proposals and losses, which know the desk that they came from.
    """

    @property
    def lab(self) -> Lab:
        """The lab: git and the records."""
        ...

    def evaluate(self, proposal: P) -> L:
        """Measure the proposal beside the baseline; waits for it."""
        ...

    def prepare(self, proposal: P) -> tuple[Coroutine[Any, Any, L], Bar]:
        """The work of :meth:`evaluate`, not started, and the bar that counts it."""
        ...

    def promote(self, what: L | P, reason: str) -> bool:
        """Promote, by a person's decision; returns whether the baseline moved."""
        ...

    def reject(self, what: L | P, reason: str) -> bool:
        """Reject, by a person's decision."""
        ...

    def undo(self, candidate_id: str | None = None) -> None:
        """Take back the decision on a candidate, or the last one."""
        ...

    def refuse_leaks(self, proposal: P) -> None:
        """Raise LeakFound where the proposal carries text of a single task."""
        ...

    def send_back(self, proposal: P, comment: str) -> None:
        """Give the proposal back to the estimator with a comment."""
        ...
