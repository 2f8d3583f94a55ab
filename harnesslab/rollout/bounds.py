"""The two agents that bound every panel: one that does nothing, one that knows the way.

What the null agent solves is the floor, and what the oracle does not solve no harness can.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.env import Environment, Policy, Task, TextEnv, private
from harnesslab.rollout.guard import bounded, deadline_of
from harnesslab.rollout.loop import run_sync
from harnesslab.rollout.null import null_of


@dataclass(frozen=True, slots=True)
class Played:
    """How a policy fared on one task. ``fault`` says what broke, if anything did."""

    task: str
    solved: bool
    steps: int
    fault: str = ""


def play_policy(environment: Environment, task: Task, policy: Policy, budget: int) -> Played:
    """Play one task with a policy, outside any harness. A policy that breaks or hangs counts as unsolved."""
    steps = 0
    env: TextEnv | None = None
    try:
        env = made = _ask(environment, "make", environment.make)
        observation, info = _ask(made, "reset", lambda: made.reset(seed=task.seed, options=task.options), environment)
        while steps < budget:
            action = _ask(made, "policy", partial(policy, observation, info), environment)
            observation, _, terminated, truncated, info = _ask(made, "step", partial(made.step, action), environment)
            steps += 1
            if private(info).get("solved"):
                return Played(task.id, True, steps)
            if terminated or truncated:
                break
        return Played(task.id, False, steps)
    except EnvironmentFault as fault:
        return Played(task.id, False, steps, str(fault))
    except (TypeError, ValueError, AttributeError) as error:
        return Played(task.id, False, steps, f"{type(error).__name__}: {error}")
    finally:
        if env is not None:
            _close(env, environment)


def first_look(environment: Environment, task: Task) -> tuple[str, dict]:
    """(observation, info) of a reset in a fresh instance. Raises EnvironmentFault."""
    env: TextEnv = _ask(environment, "make", environment.make)
    try:
        return _ask(env, "reset", lambda: env.reset(seed=task.seed, options=task.options), environment)
    finally:
        _close(env, environment)


def bounds(environment: Environment, tasks: Sequence[Task], budget: int) -> tuple[int | None, int | None]:
    """How many of the tasks the null agent and the oracle solve: (floor, ceiling).

    ``None`` where the environment has no such agent, or cannot make one.
    """
    oracle: Callable[[Task], Policy] | None = getattr(environment, "oracle", None)
    return (
        _solved(environment, tasks, budget, lambda task: null_of(environment, task)),
        _solved(environment, tasks, budget, oracle),
    )


def _solved(
    environment: Environment, tasks: Sequence[Task], budget: int, make: Callable[[Task], Policy] | None
) -> int | None:
    if not callable(make):
        return None
    solved = 0
    for task in tasks:
        try:
            policy: Policy = _ask(environment, "oracle", partial(make, task))
        except EnvironmentFault:
            return None
        solved += play_policy(environment, task, policy, budget).solved
    return solved


def _close(env: TextEnv, environment: Environment) -> None:
    if callable(getattr(env, "close", None)):
        with contextlib.suppress(EnvironmentFault):
            _ask(env, "close", env.close, environment)


def _ask(what: Any, name: str, call: Callable[[], Any], environment: Environment | None = None) -> Any:
    """A call of an environment or an instance, with its deadline. Raises EnvironmentFault."""
    if getattr(what, "threaded", False):
        return call()  # it has deadlines of its own
    seconds = deadline_of(environment if environment is not None else what)
    return run_sync(bounded(name, call, seconds))
