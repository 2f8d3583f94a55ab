"""Certification: does the environment do the same when the same actions are done again?

Follows harness-training (workofart/harness-training, MIT): each recorded action chain is replayed in a fresh
environment; a task whose observations differ is *forked* and leaves the comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.env import Environment, Task
from harnesslab.rollout.guard import GuardedEnv
from harnesslab.rollout.records import Episode


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a replay parted from the record; ``step`` is -1 when the first observation differed already."""

    task: str
    step: int
    recorded: str
    replayed: str


async def replay(environment: Environment, task: Task, episode: Episode) -> Fork | None:
    """Replay the executed actions of an episode; ``None`` when every observation is the same."""
    guarded: GuardedEnv | None = None
    try:
        guarded = await GuardedEnv.make(environment)
        seen = await guarded.reset(seed=task.seed, options=task.options)
        first = episode.steps[0].seen or episode.steps[0].observation if episode.steps else ""
        if episode.steps and seen.observation != first:
            return Fork(task.id, -1, first, seen.observation)
        for step in episode.steps:
            if not step.executed or step.action is None:
                continue
            moved = await guarded.step(step.action)
            # The record holds the regulation's note at the end of the observation.
            recorded = step.result.removesuffix(f"\n{step.note}") if step.note else step.result
            if moved.observation != recorded:
                return Fork(task.id, step.index, recorded, moved.observation)
        return None
    except EnvironmentFault as fault:
        return Fork(task.id, -1, "", str(fault))
    finally:
        if guarded is not None:
            await guarded.close()


async def certify(environment: Environment, tasks: dict[str, Task], episodes: Iterable[Episode]) -> list[Fork]:
    """The forks among scorable episodes, in their order."""
    forks = []
    for episode in episodes:
        if episode.status == "finished" and episode.task_id in tasks:
            fork = await replay(environment, tasks[episode.task_id], episode)
            if fork is not None:
                forks.append(fork)
    return forks
