"""babyai: the words for a view, the actions, the oracles, and the environment in its own Python."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from harnesslab.errors import ConfigError, EnvironmentFault, OrderError
from harnesslab.harness.load import load_folder
from harnesslab.rollout.env import SPLITS, Environment, Task
from harnesslab.rollout.process.folder import find_folder
from harnesslab.rollout.process.load import how
from harnesslab.rollout.registry import load_environment
from harnesslab.testing import check_env

folder = find_folder("babyai")
pytestmark = pytest.mark.skipif(
    folder is None or not how(folder), reason="minigrid is not here: harnesslab envs install babyai"
)


@pytest.fixture(scope="module")
def babyai() -> Any:
    made: Any = load_environment("babyai")
    yield made
    if hasattr(made, "close"):
        made.close()


def test_it_keeps_the_contract() -> None:
    check_env("babyai", limit=5).raise_for_failures()


def test_every_split_holds_every_level_and_no_start_twice(babyai: Environment) -> None:
    starts: set[tuple[str, str, str]] = set()
    env = babyai.make()
    for split, each in zip(SPLITS, (5, 5, 10), strict=True):
        tasks = babyai.tasks(split)
        assert set(Counter(task.family for task in tasks).values()) == {each}
        assert len({task.family for task in tasks[:12]}) == 12, "the first twelve are of twelve levels"
        for task in tasks:
            if task.family == "MiniGrid-Empty-Random-6x6-v0":  # few layouts: the view tells most of them apart
                observation, _ = env.reset(seed=task.seed, options=task.options)
                starts.add((task.family, str(task.seed), observation))
    env.close()
    assert len(starts) == 20


def test_the_view_in_words(babyai: Environment) -> None:
    task = next(task for task in babyai.tasks("search") if task.family == "BabyAI-PutNextLocalS5N3-v0")
    env = babyai.make()
    observation, info = env.reset(seed=task.seed, options=task.options)
    assert info["public"]["instruction"] == "put the purple ball next to the blue key"
    assert observation == (
        "You face south and carry nothing. You see:\n- a grey ball, 1 forward and 1 left\n"
        "- a purple ball, 1 forward and 1 right\n- a blue key, 2 forward and 1 left\n"
        "- a wall, 3 forward\n- a wall, 2 left\n- a wall, 2 right"
    )
    assert info["public"]["admissible"] == ["turn left", "turn right", "go forward"]
    observation, *_, info = env.step("drop")
    assert observation.startswith("Nothing happened.\n") and info["public"]["invalid"] is False
    for action in ("go forward", "turn right"):
        observation, *_, info = env.step(action)
    assert "- a purple ball, 1 forward\n" in observation and "pick up" in info["public"]["admissible"]
    observation, *_, info = env.step("pick up")
    assert observation.startswith("You face west and carry a purple ball.")
    assert "drop" in info["public"]["admissible"]
    observation, reward, _, _, info = env.step("jump")
    assert info["public"]["invalid"] is True and reward == 0 and "turn left, turn right, go forward" in observation
    env.close()


def test_lava_ends_an_episode_unsolved(babyai: Environment) -> None:
    env = babyai.make()
    walked = 0
    for task in [task for task in babyai.tasks("sealed") if "Lava" in task.family]:
        observation, _ = env.reset(seed=task.seed, options=task.options)
        ahead = re.search(r"^- lava, (\d+) forward$", observation, re.MULTILINE)
        if ahead:
            ends = [env.step("go forward") for _ in range(int(ahead[1]))]
            assert [over for _, _, over, _, _ in ends] == [False] * (len(ends) - 1) + [True]
            assert ends[-1][1] == 0 and ends[-1][4]["private"]["solved"] is False
            walked += 1
    env.close()
    assert walked


def test_wrong_calls(babyai: Environment) -> None:
    env = babyai.make()
    with pytest.raises(OrderError):
        env.step("turn left")
    with pytest.raises(EnvironmentFault, match="takes a Task's options"):
        env.reset(seed=0)
    env.close()


def test_other_levels_and_unknown_ones() -> None:
    one: Any = load_environment("babyai", levels=["BabyAI-GoToRedBallGrey-v0"], max_steps=10)
    assert one.max_steps == 10
    task: Task = one.tasks("gate")[0]
    assert task.family == "BabyAI-GoToRedBallGrey-v0"
    with pytest.raises(ConfigError, match="no level BabyAI-Flying-v0"):
        load_environment("babyai", levels=["BabyAI-Flying-v0"]).tasks("search")
    with pytest.raises(ConfigError, match="fewer than 20 layouts"):
        load_environment("babyai", levels=["MiniGrid-Empty-5x5-v0"]).tasks("search")


def test_the_starter_loads(babyai: Environment) -> None:
    assert load_folder(babyai.starter()).name == "babyai"
