"""The two agents that bound every panel: one that does nothing, one that knows the way.

What the null agent solves is the floor, and what the oracle does not solve no harness can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.env import Action, Environment, Policy, Task, private, public


@dataclass(frozen=True, slots=True)
class Played:
    """How a policy fared on one task. ``fault`` says what broke, if anything did."""

    task: str
    solved: bool
    steps: int
    fault: str = ""


def null_policy(observation: str, info: dict) -> Action:
    """Does nothing: an empty line, or the last tool that is offered with empty arguments of the right type.

    Tools that end an episode usually come last, so that on tool environments this is the agent that gives up at once.
    """
    tools = public(info).get("tools")
    if not tools:
        return ""
    function = tools[-1].get("function", tools[-1])
    schema = function.get("parameters") or {}
    empty = {"array": [], "object": {}, "integer": 0, "number": 0, "boolean": False}
    return {
        "name": function.get("name", ""),
        "arguments": {
            name: empty.get((schema.get("properties") or {}).get(name, {}).get("type"), "")
            for name in schema.get("required") or ()
        },
    }


def null_of(environment: Environment, task: Task) -> Policy:
    """The environment's own null agent where it has one (``null(task)``), else the general one."""
    own: Callable[[Task], Policy] | None = getattr(environment, "null", None)
    return own(task) if callable(own) else null_policy


def play_policy(environment: Environment, task: Task, policy: Policy, budget: int) -> Played:
    """Play one task with a policy, outside any harness. A policy that breaks counts as unsolved."""
    env = environment.make()
    steps = 0
    try:
        observation, info = env.reset(seed=task.seed, options=task.options)
        while steps < budget:
            observation, _, terminated, truncated, info = env.step(policy(observation, info))
            steps += 1
            if private(info).get("solved"):
                return Played(task.id, True, steps)
            if terminated or truncated:
                break
        return Played(task.id, False, steps)
    except EnvironmentFault as fault:
        return Played(task.id, False, steps, str(fault))
    except Exception as error:  # noqa: BLE001 - environments and their oracles are third-party code
        return Played(task.id, False, steps, f"{type(error).__name__}: {error}")
    finally:
        env.close()


def bounds(environment: Environment, tasks: Sequence[Task], budget: int) -> tuple[int, int]:
    """How many of the tasks the null agent and the oracle solve: (floor, ceiling)."""
    floor = sum(play_policy(environment, task, null_of(environment, task), budget).solved for task in tasks)
    ceiling = sum(play_policy(environment, task, environment.oracle(task), budget).solved for task in tasks)
    return floor, ceiling
