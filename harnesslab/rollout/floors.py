"""What agents without a mind solve on a panel, and the oracle: the frame in which a solve rate has a meaning.

The best constant answer is the one action that, repeated until the episode ends, solves most. Candidates are what
``environment.constants()`` lists; else the actions with which the oracle most often ends an episode. Which is best is decided
on search tasks, never on the tasks that are reported.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.bounds import ask_environment, bounds, first_look, play_policy
from harnesslab.rollout.env import Action, Environment, Policy, Task, public
from harnesslab.rollout.policies import constant, first_option

CANDIDATES = 5
SAMPLE = 60
"""Search tasks on which the constant answer is chosen."""
SECONDS = 60.0
"""After this time no more search tasks are played to choose it; only slow environments need as long."""
PROBES = 10
"""Families of which one task is reset to see whether the environment lists admissible actions."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The best constant answer; it solved ``solved`` of ``tasks`` search tasks, and was the only candidate where that is 0."""

    action: Action
    solved: int
    tasks: int

    def __str__(self) -> str:
        if isinstance(self.action, str):
            return repr(self.action)
        return f"{self.action.get('name')}({json.dumps(self.action.get('arguments', {}), ensure_ascii=False)})"


@dataclass(frozen=True, slots=True)
class Floors:
    """How many of ``tasks`` each agent solves; ``None`` where the environment has no such agent."""

    tasks: int
    null: int | None
    first: int | None
    constant: int | None
    oracle: int | None
    answer: Constant | None

    def rows(self) -> list[tuple[str, int]]:
        """(agent, tasks solved), without those that there are not."""
        named = (
            ("null agent", self.null), ("first option", self.first), ("constant", self.constant), ("oracle", self.oracle),
        )  # fmt: skip
        return [(name, solved) for name, solved in named if solved is not None]


def floors(environment: Environment, tasks: Sequence[Task], budget: int, search: Sequence[Task]) -> Floors:
    """Play each agent on ``tasks``; ``search`` is what the constant answer is chosen on, families mixed."""
    null, oracle = bounds(environment, tasks, budget)
    answer = best_constant(environment, search, budget)
    return Floors(
        len(tasks),
        null,
        solved_by(environment, tasks, budget, first_option) if lists_actions(environment, tasks) else None,
        solved_by(environment, tasks, budget, constant(answer.action)) if answer is not None else None,
        oracle,
        answer,
    )


def solved_by(environment: Environment, tasks: Sequence[Task], budget: int, policy: Policy) -> int:
    """How many of the tasks a policy without a memory solves."""
    return sum(play_policy(environment, task, policy, budget, guarded=False).solved for task in tasks)


def lists_actions(environment: Environment, tasks: Sequence[Task]) -> bool:
    """Whether the environment lists admissible actions at the start of some task."""
    one_each = {task.family: task for task in reversed(tasks)}
    for task in list(one_each.values())[:PROBES]:
        try:
            if public(first_look(environment, task)[1]).get("admissible"):
                return True
        except EnvironmentFault:
            continue
    return False


def best_constant(environment: Environment, search: Sequence[Task], budget: int) -> Constant | None:
    """The action that solves most of the search tasks, the more frequent of two that solve as many; ``None`` where there
    is neither a list of candidates nor an oracle that ends an episode."""
    sample, end = list(search)[:SAMPLE], time.monotonic() + SECONDS
    candidates = _declared(environment) or _endings(environment, sample, budget, end - SECONDS / 2)
    if len(candidates) < 2:
        return Constant(candidates[0], 0, 0) if candidates else None
    solved, played = [0] * len(candidates), 0
    for task in sample:
        if played and time.monotonic() >= end:
            break
        for place, action in enumerate(candidates):
            solved[place] += play_policy(environment, task, constant(action), budget, guarded=False).solved
        played += 1
    best = max(solved)
    return Constant(candidates[solved.index(best)], best, played)


def _declared(environment: Environment) -> list[Action]:
    constants: Callable[[], Sequence[Action]] | None = getattr(environment, "constants", None)
    if not callable(constants):
        return []
    found = ask_environment(environment, "constants", constants)
    if not isinstance(found, list | tuple) or not all(isinstance(action, str | dict) for action in found):
        raise EnvironmentFault("the environment's constants must return a list of actions", cause="lie")
    return list(found)


def _endings(environment: Environment, tasks: Sequence[Task], budget: int, end: float) -> list[Action]:
    """The oracle's last actions where it solved the task, the most frequent first."""
    oracle: Callable[[Task], Policy] | None = getattr(environment, "oracle", None)
    if not callable(oracle):
        return []
    counts: Counter[str] = Counter()
    for task in tasks:
        if counts and time.monotonic() >= end:
            break
        try:
            policy = _Noting(ask_environment(environment, "oracle", partial(oracle, task)))
        except EnvironmentFault:
            return []
        if play_policy(environment, task, policy, budget).solved:
            counts[json.dumps(policy.last, sort_keys=True, default=str)] += 1
    return [json.loads(action) for action, _ in counts.most_common(CANDIDATES)]


class _Noting:
    """A policy that remembers its last action."""

    def __init__(self, policy: Policy):
        self._policy = policy
        self.last: Action = ""

    def __call__(self, observation: str, info: dict) -> Action:
        self.last = self._policy(observation, info)
        return self.last
