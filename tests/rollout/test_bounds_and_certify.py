"""Null agent and oracle bound a panel; certification finds environments that do not repeat themselves."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import harnesslab as hl
from harnesslab.harness import Pipeline, load_folder
from harnesslab.rollout.bounds import bounds
from harnesslab.rollout.certify import certify
from harnesslab.rollout.env import Task
from harnesslab.rollout.episode import play
from harnesslab.rollout.null import null_policy
from tests.conftest import always
from tests.worlds import STARTER, CorridorWorld


def test_bounds_of_the_corridor() -> None:
    world = CorridorWorld()
    assert bounds(world, world.tasks("gate"), budget=5) == (0, 8)
    assert bounds(world, world.tasks("gate"), budget=2) == (0, 4)


def test_an_oracle_that_is_none_is_no_oracle() -> None:
    class Mute(CorridorWorld):
        def oracle(self, task: Task) -> Any:
            return None

    world = Mute()
    assert bounds(world, world.tasks("search")[:2], 5)[1] is None


def test_the_null_agent_gives_up_at_once_where_there_are_tools() -> None:
    schema = {"type": "object", "properties": {"answers": {"type": "array"}}, "required": ["answers"]}
    tools = [{"type": "function", "function": {"name": "finish", "parameters": schema}}]
    assert null_policy("", {"public": {"tools": tools}}) == {"name": "finish", "arguments": {"answers": []}}
    assert null_policy("", {"public": {}}) == ""


def test_certify_passes_a_faithful_world_and_names_the_fork_of_another() -> None:
    world = CorridorWorld()
    tasks = {task.id: task for task in world.tasks("search")}
    pipeline = Pipeline(load_folder(STARTER))

    async def episodes() -> list:
        return [await play(world.make(), task, pipeline, always("right"), budget=5) for task in tasks.values()]

    played = asyncio.run(episodes())
    assert asyncio.run(certify(world, tasks, played)) == []

    weather = itertools.count()
    original = world.make

    def changing():
        env = original()
        step = env.step
        env.step = lambda action: (f"It is {next(weather)} degrees.", *step(action)[1:])  # type: ignore[method-assign]
        return env

    world.make = changing  # type: ignore[method-assign]
    forks = asyncio.run(certify(world, tasks, played))
    assert [fork.task for fork in forks] == list(tasks)
    assert forks[0].step == 0 and forks[0].recorded.startswith("Room") and "degrees" in forks[0].replayed


def test_the_random_control_gets_complete_replies() -> None:
    world = CorridorWorld()
    task = world.tasks("search")[3]
    episode = asyncio.run(play(world.make(), task, Pipeline(load_folder(STARTER)), hl.LLM.random(1), budget=30))
    assert episode.invalid == 0 and episode.length > 0
    again = asyncio.run(play(world.make(), task, Pipeline(load_folder(STARTER)), hl.LLM.random(1), budget=30))
    assert [step.action for step in again.steps] == [step.action for step in episode.steps]
