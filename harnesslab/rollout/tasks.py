"""From episodes to tasks: the one rule by which a task that was played several times counts as solved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnesslab.rollout.records import Episode

RULE = "A task counts as solved when more than half of its scorable repeats reached the goal; a tie does not."


def by_task(outcomes: Iterable[tuple[str, bool]]) -> dict[str, list[bool]]:
    """The outcomes of each task's episodes, from (task id, reached the goal); tasks in the order of their first episode."""
    tasks: dict[str, list[bool]] = {}
    for task, won in outcomes:
        tasks.setdefault(task, []).append(bool(won))
    return tasks


def won_tasks(outcomes: Iterable[tuple[str, bool]]) -> set[str]:
    """The tasks that count as solved, by :data:`RULE`."""
    return {task for task, won in by_task(outcomes).items() if 2 * sum(won) > len(won)}


def solved_tasks(episodes: Iterable[Episode]) -> set[str]:
    """:func:`won_tasks` of episodes; those that are unscorable say nothing."""
    return won_tasks((e.task_id, e.solved) for e in episodes if e.status == "finished")


def solved_shares(episodes: Iterable[Episode]) -> dict[str, float]:
    """For each task the share of its scorable episodes that reached the goal."""
    tasks = by_task((e.task_id, e.solved) for e in episodes if e.status == "finished")
    return {task: sum(won) / len(won) for task, won in tasks.items()}
