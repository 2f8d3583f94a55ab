"""The kitchen: solvable, deterministic, bounded, and not to be solved without reading."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.errors import EnvironmentFault, OrderError
from harnesslab.rollout.env import SPLITS, Split, Task
from harnesslab.testing import check_env
from harnesslab_envs.kitchen import environment
from harnesslab_envs.kitchen.env import KitchenEnv, read
from harnesslab_envs.kitchen.scene import FAMILIES, HEATERS
from harnesslab_envs.kitchen.tasks import PER_FAMILY, scene_of

KITCHEN = environment()
LONGEST = 400
"""Characters that no observation has."""


def start(task: Task) -> tuple[KitchenEnv, str, dict[str, Any]]:
    env = KITCHEN.make()
    seen, info = env.reset(seed=task.seed, options=task.options)
    return env, seen, info


def first(family: str, split: Split = "search") -> Task:
    return next(task for task in KITCHEN.tasks(split) if task.family == family)


def follow(task: Task, actions: tuple[str, ...]) -> tuple[str, dict[str, Any], bool]:
    """Do the actions; the last observation, the last info, and whether the episode is over."""
    env, seen, info = start(task)
    over = False
    for action in actions:
        seen, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return seen, info, over


@pytest.mark.parametrize("split", SPLITS)
def test_contract(split: Split) -> None:
    """Oracle, null agent, determinism also in other processes, privacy, nonsense: all tasks of a split."""
    report = check_env("harnesslab_envs.kitchen:environment", split=split, limit=None, processes=split == "sealed")
    report.raise_for_failures()
    assert (report.oracle_solved, report.null_solved) == (60, 0)


def test_splits_share_no_plan_and_no_instruction_is_one_task_s_own() -> None:
    plans = [scene_of(task).plan for split in SPLITS for task in KITCHEN.tasks(split)]
    assert len(set(plans)) == len(plans) == len(SPLITS) * len(FAMILIES) * PER_FAMILY
    told = [start(task)[2]["public"]["instruction"] for task in KITCHEN.tasks("search")]
    assert min(told.count(text) for text in told) >= 2


def test_a_random_choice_is_lost() -> None:
    solved = 0
    for task in KITCHEN.tasks("sealed"):
        env, _, info = start(task)
        draw, over = random.Random(task.id), False
        while not over:
            _, _, terminated, truncated, info = env.step(draw.choice(info["public"]["admissible"]))
            over = terminated or truncated
        solved += info["private"]["solved"]
    assert solved <= 3  # 5 %


def test_what_is_right_is_told_before_it_is_needed() -> None:
    for task in KITCHEN.tasks("gate"):
        scene = scene_of(task)
        env, seen, info = start(task)
        told = seen + info["public"]["instruction"]
        for action in scene.plan:
            for word in (scene.source, scene.wanted, scene.target, scene.desk, scene.heater):
                assert not word or word not in action or word in told
            told += env.step(action)[0]


def test_a_broken_heater_heats_nothing() -> None:
    task = first("heat")
    scene = scene_of(task)
    broken = next(heater for heater in HEATERS if heater != scene.heater)
    plan = tuple(action.replace(f"go to {scene.heater}", f"go to {broken}") for action in scene.plan)
    _, info, over = follow(task, plan)
    assert over and not info["private"]["solved"]
    assert info["private"]["progress"] < 1


@pytest.mark.parametrize("family", ["clean", "heat"])
def test_served_too_early_is_lost(family: str) -> None:
    task = first(family)
    plan = scene_of(task).plan
    _, info, over = follow(task, (*plan[:2], *plan[-2:]))
    assert over and not info["private"]["solved"]


def test_the_wrong_guest_and_the_wrong_thing_are_lost() -> None:
    task = first("fetch")
    scene = scene_of(task)
    other = next(place for place in scene.surfaces if place != scene.target)
    thing = next(thing for thing in scene.lookalikes if thing != scene.wanted)
    for plan in (
        (*scene.plan[:2], f"go to {other}", f"put {scene.wanted} on {other}"),
        (scene.plan[0], f"take {thing}", scene.plan[2], f"put {thing} on {scene.target}"),
    ):
        _, info, over = follow(task, plan)
        assert over and not info["private"]["solved"]
        assert info["public"]["admissible"] == []


@pytest.mark.parametrize("washed", [False, True])
def test_a_thing_can_be_put_back_and_stays_as_it_is(washed: bool) -> None:
    task = first("clean")
    scene = scene_of(task)
    wash = scene.plan[2:4] if washed else ("go to sink",)
    back = (*scene.plan[:2], *wash, scene.plan[0], f"put {scene.wanted} in {scene.source}", f"take {scene.wanted}")
    seen, info, over = follow(task, back)
    assert not over and ("dirty" in seen) is not washed and (scene.guest in seen) is washed
    assert not any(action.startswith("take") for action in info["public"]["admissible"])


def test_the_guest_leaves_after_twice_the_plan() -> None:
    task = first("fetch")
    env, _, _ = start(task)
    ends = [env.step("nonsense")[2:4] for _ in range(2 * len(scene_of(task).plan))]
    assert ends == [(False, False)] * (len(ends) - 1) + [(False, True)]
    with pytest.raises(OrderError, match="reset"):
        env.step("go to sink")


def test_invalid_actions_are_answered() -> None:
    env, _, _ = start(first("fetch"))
    for action, told in (("dance", "commands"), ("open sink", "cannot"), ({"name": "go"}, "commands")):
        seen, _, _, _, info = env.step(action)
        assert told in seen and info["public"]["invalid"] is True


def test_articles_and_capitals_do_not_matter() -> None:
    assert read("  Go to THE sink. ") == "go to sink"
    assert read("take an  apple pie") == "take apple pie"


@pytest.mark.parametrize("options", [{"family": "dance"}, {"family": "heat", "kind": "cup"}])
def test_unknown_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(EnvironmentFault, match="no tasks"):
        KITCHEN.make().reset(seed=1, options=options)


def test_step_before_reset_is_refused() -> None:
    with pytest.raises(OrderError, match="reset"):
        KITCHEN.make().step("go to sink")


def _pick(admissible: list[str], number: int, text: str) -> str:
    return admissible[number % len(admissible)] if number else text


@settings(max_examples=60, deadline=None)
@given(
    family=st.sampled_from(FAMILIES),
    seed=st.integers(0, 10_000),
    moves=st.lists(st.tuples(st.integers(0, 20), st.text(max_size=300)), min_size=1, max_size=12),
)
def test_any_actions_keep_the_bounds(family: str, seed: int, moves: list[tuple[int, str]]) -> None:
    """No crash, short texts, progress that never falls and is 1 exactly when solved."""
    env = KITCHEN.make()
    _, info = env.reset(seed=seed, options={"family": family})
    progress = 0.0
    for number, text in moves:
        admissible = info["public"]["admissible"]
        action = _pick(admissible, number, text)
        seen, reward, terminated, truncated, info = env.step(action)
        assert len(seen) < LONGEST
        assert info["public"]["invalid"] is (read(action) not in admissible)
        assert progress <= info["private"]["progress"] <= 1
        progress = info["private"]["progress"]
        assert (progress == 1) is info["private"]["solved"] is bool(reward)
        if terminated or truncated:
            break
