"""gymtext: known games in words, unknown ones by name, plans on tables and over copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harnesslab.errors import ConfigError, EnvironmentFault
from harnesslab.harness.load import load_folder
from harnesslab.rollout.bounds import play_policy
from harnesslab.rollout.process.folder import find_folder
from harnesslab.rollout.process.load import how
from harnesslab.rollout.registry import load_environment
from harnesslab.testing import check_env

folder = find_folder("gymtext")
pytestmark = pytest.mark.skipif(
    folder is None or not how(folder), reason="gymnasium is not here: harnesslab envs install gymtext"
)


@contextmanager
def opened(**options: Any) -> Iterator[Any]:
    made: Any = load_environment("gymtext", **options)
    yield made
    if hasattr(made, "close"):
        made.close()


def test_it_keeps_the_contract() -> None:
    check_env("gymtext", limit=4).raise_for_failures()


def test_the_frozen_lake_in_words() -> None:
    with opened(id="FrozenLake-v1", arguments={"map_name": "4x4"}) as world:
        env = world.make()
        observation, info = env.reset(seed=0, options={"game": "FrozenLake-v1"})
        assert observation.startswith("You are in row 0, column 0.") and observation.endswith("SFFF\nFHFH\nFFFH\nHFFG")
        assert info["public"]["admissible"] == ["left", "down", "right", "up"]
        env.step("down")
        observation, reward, over, _, info = env.step("right")
        assert observation.startswith("You are in row 1, column 1.") and over and reward == 0
        assert info["private"]["solved"] is False, "that was a hole"
        env.close()


def test_the_taxi_in_words() -> None:
    with opened(id="Taxi-v4") as world:
        task = world.tasks("search")[0]
        env = world.make()
        observation, info = env.reset(seed=task.seed, options=task.options)
        assert "The passenger waits at " in observation and "|R: | : :G|" in observation
        assert set(info["public"]["admissible"]) < {"south", "north", "east", "west", "pick up", "drop off"}
        policy, seen, over = world.oracle(task), set(), False
        while not over:
            action = policy(observation, info)
            seen.add(action)
            assert action in info["public"]["admissible"]
            observation, reward, over, _, info = env.step(action)
        assert info["private"]["solved"] and reward == 20 and {"pick up", "drop off"} <= seen
        env.close()


def test_every_task_of_the_shown_games_has_a_way_within_the_budget() -> None:
    with opened() as world:
        tasks = [task for split in ("search", "gate", "sealed") for task in world.tasks(split)]
        assert len(tasks) == 96
        assert all(play_policy(world, task, world.oracle(task), world.max_steps).solved for task in tasks)


def test_a_slippery_lake_is_planned_over_copies() -> None:
    with opened(id="FrozenLake-v1", arguments={"is_slippery": True}, max_steps=100) as world:
        tasks = world.tasks("search")[:3]
        assert all(play_policy(world, task, world.oracle(task), 100).solved for task in tasks)


def test_a_game_that_we_do_not_know() -> None:
    with opened(id="Blackjack-v1") as world:
        task = world.tasks("gate")[0]
        env = world.make()
        observation, info = env.reset(seed=task.seed, options=task.options)
        assert observation.startswith("State ") and info["public"]["admissible"] == ["action 0", "action 1"]
        *_, info = env.step("action 7")
        assert info["public"]["invalid"] is True
        _, reward, over, _, info = env.step("action 0")
        assert over and info["private"]["solved"] == (reward > 0)
        env.close()


def test_a_drawing_for_terminals_has_no_escapes() -> None:
    with opened(id="CliffWalking-v1") as world:
        task = world.tasks("search")[0]
        assert play_policy(world, task, world.oracle(task), world.max_steps).steps == 13
        env = world.make()
        observation, _ = env.reset(seed=0, options=task.options)
        assert "\x1b" not in observation and observation.endswith("x  C  C  C  C  C  C  C  C  C  C  T")
        env.close()


def test_wrong_names_and_options() -> None:
    for name, words in (("Nothing-v0", "'Nothing-v0' cannot be played as text"), ("Taxi-v3", "'Taxi-v3' cannot be")):
        with pytest.raises(ConfigError, match=words), opened(id=name) as world:
            world.tasks("search")
    with opened() as world, pytest.raises(EnvironmentFault, match="takes a Task's options"):
        world.make().reset(seed=0)


def test_the_starter_loads() -> None:
    assert folder is not None and load_folder(folder.path / "starter").name == "gymtext"
