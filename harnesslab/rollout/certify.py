"""Certification: does the environment do the same when the same actions are done again?

Follows harness-training (workofart/harness-training, MIT): each recorded action chain is replayed in a fresh
environment; a task in which anything differs is *forked* and leaves the comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentFault
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
    """Replay the executed actions of an episode; ``None`` when all that the agent saw and how it was graded is the same.

    Compared are observations, the admissible actions, whether each action was understood, its reward, and whether the goal was reached. What the
    environment declares as ``volatile`` (regular expressions, such as times, addresses and paths) is masked on both sides.
    """
    guarded: GuardedEnv | None = None
    masks = _volatile(environment)

    def fork(step: int, what: str, recorded: Any, replayed: Any) -> Fork | None:
        one, other = (_masked(value, masks) for value in (recorded, replayed))
        return None if one == other else Fork(task.id, step, f"{what}{one}", f"{what}{other}")

    try:
        guarded = await GuardedEnv.make(environment)
        seen = await guarded.reset(seed=task.seed, options=task.options)
        first = episode.steps[0].seen or episode.steps[0].observation if episode.steps else ""
        if episode.steps and (found := fork(-1, "", first, seen.observation)):
            return found
        solved = False
        for step in episode.steps:
            listed = step.admissible is not None and fork(
                step.index, "admissible: ", list(step.admissible), list(guarded.seen.admissible or ())
            )
            if listed:
                return listed
            if not step.executed or step.action is None:
                continue
            moved = await guarded.step(step.action)
            solved = solved or moved.solved
            # The record holds the regulation's note at the end of the observation.
            recorded = step.result.removesuffix(f"\n{step.note}") if step.note else step.result
            for what, before, after in (
                ("", recorded, moved.observation),
                ("invalid: ", step.invalid, moved.invalid),
                ("reward: ", step.reward, moved.reward),
            ):
                if found := fork(step.index, what, before, after):
                    return found
        return fork(len(episode.steps) - 1, "solved: ", episode.solved, solved) if episode.steps else None
    except EnvironmentFault as fault:
        return Fork(task.id, -1, "", str(fault))
    finally:
        if guarded is not None:
            await guarded.close()


def _volatile(environment: Environment) -> list[re.Pattern[str]]:
    declared = getattr(environment, "volatile", ())
    try:
        return [re.compile(pattern) for pattern in declared]
    except (re.error, TypeError) as error:
        raise ConfigError(f"volatile of '{environment.name}' must be a list of regular expressions: {error}") from None


def _masked(value: Any, masks: Sequence[re.Pattern[str]]) -> str:
    text = str(value)
    for mask in masks:
        text = mask.sub("…", text)
    return text


async def certify(environment: Environment, tasks: dict[str, Task], episodes: Iterable[Episode]) -> list[Fork]:
    """The forks among scorable episodes, in their order."""
    forks = []
    for episode in episodes:
        if episode.status == "finished" and episode.task_id in tasks:
            fork = await replay(environment, tasks[episode.task_id], episode)
            if fork is not None:
                forks.append(fork)
    return forks
