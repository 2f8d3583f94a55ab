"""Panels: which tasks of a split are played, in which order, and how often."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from harnesslab.errors import ConfigError
from harnesslab.rollout.env import SPLITS, Environment, Split, Task, tasks_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Panel:
    """The tasks that are played, in order, how often each, and the number of the first repeat: another one is another draw."""

    split: Split
    tasks: tuple[Task, ...]
    repeats: int = 1
    first: int = 0

    @property
    def keys(self) -> list[tuple[str, int]]:
        """(task id, repeat) of each episode, repeats of a task beside each other."""
        return [(task.id, repeat) for task in self.tasks for repeat in self.numbers]

    @property
    def numbers(self) -> range:
        """The numbers of the repeats."""
        return range(self.first, self.first + self.repeats)

    def __len__(self) -> int:
        return len(self.tasks) * self.repeats


def check_ids(environment: Environment, ids: Sequence[str]) -> None:
    """Raise ConfigError for a task to leave out that the environment does not have in any split."""
    if not ids:
        return
    known = [task.id for split in SPLITS for task in tasks_of(environment, split)]
    for unknown in sorted(set(ids) - set(known)):
        close = difflib.get_close_matches(unknown, known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else f"; its {len(known)} tasks begin with {known[:3]}"
        raise ConfigError(f"settings: key 'leave_out': '{environment.name}' has no task {unknown!r}{meant}")


def in_turn(tasks: Sequence[T], count: int, number: int) -> list[T]:
    """The tasks of turn ``number``: ``count`` of them, going on where the turn before stopped."""
    start, count = number * count, min(count, len(tasks))
    return [tasks[(start + place) % len(tasks)] for place in range(count)]


def choose_panel(
    tasks: Sequence[Task],
    split: Split,
    *,
    limit: int | None = None,
    families: Sequence[str] | None = None,
    repeats: int = 1,
    turn: int = 0,
) -> Panel:
    """A panel of ``limit`` tasks, spread evenly over the families in turn, so that each is there: the first ones, or in
    another ``turn`` those that come after them, and the first again when all had theirs.

    Raises ConfigError for an unknown family or an empty panel.
    """
    known = sorted({task.family for task in tasks})
    unknown = sorted(set(families or ()) - set(known))
    if unknown:
        raise ConfigError(f"the {split} split has no family {unknown[0]!r}; it has {', '.join(known)}")
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        if families is None or task.family in families:
            groups.setdefault(task.family, []).append(task)
    dealt = [task for row in _rounds(list(groups.values())) for task in row]
    chosen = tuple(dealt if limit is None else in_turn(dealt, limit, turn))
    if not chosen:
        raise ConfigError(f"the {split} split has no task to play")
    return Panel(split, chosen, repeats)


def _rounds(groups: list[list[Task]]) -> list[list[Task]]:
    longest = max((len(group) for group in groups), default=0)
    return [[group[place] for group in groups if place < len(group)] for place in range(longest)]
