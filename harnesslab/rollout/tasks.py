"""From episodes to tasks: the one rule by which a task that was played several times counts as solved."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

RULE = "A task counts as solved when more than half of its scorable repeats reached the goal; a tie does not."


class Attempt(Protocol):
    """What the rule reads of an episode."""

    @property
    def task_id(self) -> str: ...

    @property
    def solved(self) -> bool: ...

    @property
    def status(self) -> str: ...


def by_task(outcomes: Iterable[tuple[str, bool]]) -> dict[str, list[bool]]:
    """The outcomes of each task's episodes, from (task id, reached the goal); tasks in the order of their first episode."""
    tasks: dict[str, list[bool]] = {}
    for task, won in outcomes:
        tasks.setdefault(task, []).append(bool(won))
    return tasks


def won_tasks(outcomes: Iterable[tuple[str, bool]]) -> set[str]:
    """The tasks that count as solved, by :data:`RULE`."""
    return {task for task, won in by_task(outcomes).items() if 2 * sum(won) > len(won)}


def solved_tasks(attempts: Iterable[Attempt]) -> set[str]:
    """:func:`won_tasks` of attempts; those that are unscorable say nothing."""
    return won_tasks((e.task_id, e.solved) for e in attempts if e.status == "finished")


def solved_shares(attempts: Iterable[Attempt]) -> dict[str, float]:
    """For each task the share of its scorable episodes that reached the goal."""
    tasks = by_task((e.task_id, e.solved) for e in attempts if e.status == "finished")
    return {task: sum(won) / len(won) for task, won in tasks.items()}


def wilson_interval(count: float, total: int) -> tuple[float, float, float]:
    """(share, low, high): Wilson's 95% interval of ``count`` of ``total``, without the packages of the extra ``lab``."""
    share, z = count / total, 1.96
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return share, max(0.0, middle - half), min(1.0, middle + half)
