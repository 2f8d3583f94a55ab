"""The two agents that bound every panel: one that does nothing, one that knows the way.

What the null agent solves is the floor, and what the oracle does not solve no harness can.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
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


def play_policy(environment: Environment, task: Task, policy: Policy, budget: int, *, guarded: bool = True) -> Played:
    """Play one task with a policy, outside any harness. A policy that breaks or hangs counts as unsolved.

    ``guarded``: the policy has a deadline, as an environment's own needs one.
    """
    return run_sync(_play(environment, task, policy, budget, guarded))


async def _play(environment: Environment, task: Task, policy: Policy, budget: int, guarded: bool) -> Played:
    steps = 0
    env: TextEnv | None = None
    try:
        env = made = await _ask(environment, "make", environment.make)
        observation, info = await _ask(
            made, "reset", lambda: made.reset(seed=task.seed, options=task.options), environment
        )
        while steps < budget:
            decide = partial(policy, observation, info)
            action = await _ask(made, "policy", decide, environment) if guarded else decide()
            observation, _, terminated, truncated, info = await _ask(
                made, "step", partial(made.step, action), environment
            )
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
            await _close(env, environment)


def first_look(environment: Environment, task: Task) -> tuple[str, dict]:
    """(observation, info) of a reset in a fresh instance. Raises EnvironmentFault."""

    async def look() -> Any:
        env: TextEnv = await _ask(environment, "make", environment.make)
        try:
            return await _ask(env, "reset", lambda: env.reset(seed=task.seed, options=task.options), environment)
        finally:
            await _close(env, environment)

    seen = run_sync(look())
    if not isinstance(seen, tuple | list) or len(seen) != 2 or not isinstance(seen[1], dict):
        raise EnvironmentFault("the environment's reset must return an observation and info", cause="lie")
    if not isinstance(seen[1].get("public", {}), Mapping):
        raise EnvironmentFault(
            "the environment's reset must return info with the parts 'public' and 'private'", cause="lie"
        )
    return str(seen[0]), seen[1]


def ask_environment(environment: Environment, name: str, call: Callable[[], Any]) -> Any:
    """A call of the environment that makes no instance, with its deadline. Raises EnvironmentFault, which names the call."""
    return run_sync(_ask(environment, name, call))


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
            policy: Policy | None = ask_environment(environment, "oracle", partial(make, task))
        except EnvironmentFault:
            return None
        if policy is None:
            return None
        solved += play_policy(environment, task, policy, budget).solved
    return solved


async def _close(env: TextEnv, environment: Environment) -> None:
    if callable(getattr(env, "close", None)):
        with contextlib.suppress(EnvironmentFault):
            await _ask(env, "close", env.close, environment)


async def _ask(what: Any, name: str, call: Callable[[], Any], environment: Environment | None = None) -> Any:
    """A call of an environment or an instance, with its deadline. Raises EnvironmentFault."""
    if getattr(what, "threaded", False):
        # It has deadlines of its own, and waits.
        return await asyncio.get_running_loop().run_in_executor(None, call)
    return await bounded(name, call, deadline_of(environment if environment is not None else what))
