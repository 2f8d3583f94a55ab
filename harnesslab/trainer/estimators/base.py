"""The one method that every estimator has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, runtime_checkable

if TYPE_CHECKING:
    from harnesslab.harness import Harness
    from harnesslab.trainer.failures import Failures
    from harnesslab.trainer.proposal import Proposals


class PastVerdict(TypedDict, total=False):
    """An earlier proposal and its verdict, as estimators see it.

    ``content`` is the proposal's content hash, ``baseline`` the commit that it was measured against, ``loss`` the
    criterion's number. Keys may be absent, and others may be present.
    """

    content: str
    baseline: str
    status: Literal["promoted", "rejected", "undecided"]
    layer: str
    kind: str
    name: str
    loss: float
    reason: str


@runtime_checkable
class Estimator(Protocol):
    """Reads what failed and proposes what to change: the backward direction of the training loop.

    It sees the trajectories of search tasks and the present harness, and nothing else. It never measures and never commits.
    """

    def propose(self, failures: Failures, harness: Harness, history: Sequence[PastVerdict] = ()) -> Proposals:
        """A few proposals, best first; none when it has no idea.

        ``history`` are the verdicts so far, oldest first.
        """
        ...


def judged(history: Sequence[PastVerdict], baseline: str) -> set[str]:
    """Content hashes of the proposals that were measured against this very baseline and not promoted.

    Measuring them again on the same baseline can be asked for, but no estimator should propose it.
    """
    return {
        past["content"]
        for past in history
        if "content" in past and past.get("status") != "promoted" and past.get("baseline", baseline) == baseline
    }
