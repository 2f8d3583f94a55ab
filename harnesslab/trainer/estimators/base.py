"""The one method that every estimator has. What else it may have and is told: :mod:`harnesslab.trainer.estimators.brief`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, runtime_checkable

if TYPE_CHECKING:
    from harnesslab.harness import Harness
    from harnesslab.rollout.records import Episode
    from harnesslab.trainer.failures import Failures
    from harnesslab.trainer.proposal import Proposals


CHECKED = 7
"""Conditions of a kind that must have been checked before their hit rate counts: more than two verdicts hold."""


class PastVerdict(TypedDict, total=False):
    """An earlier candidate and its verdict, as estimators see it.

    ``content`` is the proposal's content hash, ``baseline`` the commit that it was measured against, ``loss`` the
    criterion's number, ``changes`` its files with their new text. Of the gate there are only counts: ``solved`` (before, after, of
    how many tasks), ``flips`` (``gained``, ``lost``, ``incidental``), ``fired`` (share of its episodes). ``prediction`` is what was
    predicted, ``predictions`` whether each of its conditions held. ``episodes`` are its episodes on the
    search split, with all steps, where it was played there. Keys may be absent, and others may be present.
    """

    content: str
    baseline: str
    status: Literal["promoted", "rejected", "undecided"]
    layer: str
    kind: str
    name: str
    loss: float
    reason: str
    predictions: dict[str, bool]
    about: str
    estimator: str
    decided_by: Literal["person", "criterion"]
    changes: Mapping[str, str | None]
    solved: tuple[int, int, int]
    flips: Mapping[str, int]
    fired: float
    prediction: Mapping[str, Any]
    episodes: Sequence[Episode]


@runtime_checkable
class Estimator(Protocol):
    """Reads what failed and proposes what to change: the backward direction of the training loop.

    It sees the trajectories of search tasks and the present harness, and nothing else. It never measures and never commits.
    """

    def propose(self, failures: Failures, harness: Harness, history: Sequence[PastVerdict] = ()) -> Proposals:
        """A few proposals, best first; none when it has no idea.

        ``history`` are the verdicts so far, oldest first. An estimator whose ``propose`` has a fourth parameter, ``brief``, is
        given a :class:`~harnesslab.Brief` with all of this and more.
        """
        ...


def hit_rate(history: Iterable[PastVerdict], kind: str) -> float:
    """The share of predicted conditions that held for proposals of a kind, with one hit and one miss beforehand; 0.5 where fewer
    than :data:`CHECKED` were checked."""
    held = [ok for past in history if past.get("kind") == kind for ok in past.get("predictions", {}).values()]
    return (sum(held) + 1) / (len(held) + 2) if len(held) >= CHECKED else 0.5


def judged(history: Sequence[PastVerdict], baseline: str) -> set[str]:
    """Content hashes of the proposals that were measured against this very baseline and not promoted.

    Measuring them again on the same baseline can be asked for, but no estimator should propose it.
    """
    return {
        past["content"]
        for past in history
        if "content" in past and past.get("status") != "promoted" and past.get("baseline", baseline) == baseline
    }
