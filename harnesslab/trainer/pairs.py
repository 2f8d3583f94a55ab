"""Pairs of episodes, baseline and candidate, on the same task and repeat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from harnesslab.ledger import Flip
from harnesslab.rollout.records import Episode
from harnesslab.rollout.tasks import solved_tasks


@dataclass(frozen=True, slots=True)
class Pair:
    """The same task and repeat, before and after the change."""

    before: Episode
    after: Episode

    @property
    def task(self) -> str:
        """The task's id."""
        return self.before.task_id

    @property
    def scorable(self) -> bool:
        """Whether both sides say something about their harness."""
        return self.before.status == "finished" and self.after.status == "finished"

    def assume(self, *, before: bool, after: bool) -> Pair:
        """The pair with outcomes assumed for whichever side is unscorable."""
        return Pair(_assume(self.before, before), _assume(self.after, after))


def pair_up(baseline: Iterable[Episode], candidate: Iterable[Episode]) -> list[Pair]:
    """The pairs that both runs played, in the baseline's order."""
    after = {episode.key: episode for episode in candidate}
    return [Pair(episode, after[episode.key]) for episode in baseline if episode.key in after]


def comparable(pairs: Iterable[Pair]) -> list[Pair]:
    """The pairs whose baseline could be scored; the others say nothing for or against any candidate.

    What a candidate's side alone could not be scored on stays in, so that no candidate can get rid of a task.
    """
    return [pair for pair in pairs if pair.before.status == "finished"]


def unplayed(baseline: Iterable[Episode], candidate: Iterable[Episode]) -> list[Episode]:
    """The scorable episodes of the baseline that the candidate has not played."""
    played = {episode.key for episode in candidate}
    return [episode for episode in baseline if episode.key not in played and episode.status == "finished"]


def prefix(keys: Sequence[tuple[str, int]], baseline: Iterable[Episode], candidate: Iterable[Episode]) -> list[Pair]:
    """The pairs of the first tasks of a panel, up to the first task of which anything is still open.

    ``keys``: (task, repeat) in the order of the panel. Tasks that are set aside are passed over, as :func:`comparable` does.
    """
    before, after = {e.key: e for e in baseline}, {e.key: e for e in candidate}
    found: list[Pair] = []
    for _, group in groupby(keys, key=itemgetter(0)):
        wanted = list(group)
        if any(key not in before or key not in after for key in wanted):
            break
        here = [Pair(before[key], after[key]) for key in wanted if not before[key].set_aside]
        if not all(pair.scorable for pair in here):
            break
        found += here
    return found


def changed_tasks(pairs: Iterable[Pair]) -> tuple[set[str], set[str]]:
    """Tasks (gained, lost), by :data:`harnesslab.rollout.tasks.RULE`; pairs with an unscorable side say nothing."""
    pairs = [pair for pair in pairs if pair.scorable]
    before, after = solved_tasks(pair.before for pair in pairs), solved_tasks(pair.after for pair in pairs)
    return after - before, before - after


def flips(pairs: Iterable[Pair], new: frozenset[str] | None) -> tuple[Flip, ...]:
    """Tasks whose outcome changed. ``new``: names of the interventions that were added, changed or removed;
    ``None`` when the change concerns every step.

    A flip is incidental when none of them fired on the task, on either side.
    """
    scorable = [pair for pair in pairs if pair.scorable]
    gained, lost = changed_tasks(scorable)
    found: dict[str, bool] = {}
    for pair in scorable:
        if pair.task in gained or pair.task in lost:
            fired = new is None or any(pair.after.fired.get(name) or pair.before.fired.get(name) for name in new)
            found[pair.task] = found.get(pair.task, False) or fired
    return tuple(Flip(task, task in lost, task in gained, incidental=not fired) for task, fired in found.items())


def _assume(episode: Episode, solved: bool) -> Episode:
    if episode.status == "finished":
        return episode
    return replace(episode, status="finished", solved=solved)
