"""What agents without a mind solve: the null agent, the first option, one constant answer; and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harnesslab.envtools import new
from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.env import Action, Policy, Split, Task
from harnesslab.rollout.floors import Floors, best_constant, floors
from harnesslab.rollout.policies import random_option
from harnesslab.rollout.registry import load_environment
from tests.worlds import STARTER, CorridorWorld

ANSWERS: dict[str, tuple[str, ...]] = {
    "search": ("yes", "no", "no", "7", "no", "yes", "8", "9"),
    "gate": ("yes",) * 8,
    "sealed": ("no", "yes", "yes", "yes", "no", "11", "12", "13"),
}


class Quiz:
    """One question, one answer; asks nothing else. ``looks``: the oracle looks first. Counts what is played of each split."""

    name, version, max_steps = "quiz", "1", 4

    def __init__(self, looks: bool = False, answers: Mapping[str, tuple[str, ...]] = ANSWERS):
        self.looks, self.answers, self.played = looks, answers, dict.fromkeys(answers, 0)

    def tasks(self, split: Split) -> list[Task]:
        return [Task(f"{split}-{n}", split, "q", n, {"split": split}) for n in range(len(self.answers[split]))]

    def make(self) -> Any:
        world = self

        class One:
            def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict]:
                world.played[options["split"]] += 1
                self.right = world.answers[options["split"]][int(seed or 0)]
                return "What is it?", {"public": {"instruction": "Answer."}, "private": {"solved": False}}

            def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
                done = action != "look"
                info = {"public": {"instruction": "Answer."}, "private": {"solved": action == self.right}}
                return "Thanks.", 0.0, done, False, info

        return One()

    def oracle(self, task: Task) -> Policy:
        plan = iter(["look"] if self.looks else [])
        return lambda _observation, _info: next(plan, self.answers[task.split][task.seed])

    def starter(self) -> Any:
        return STARTER


def all_floors(world: Any) -> Floors:
    return floors(world, world.tasks("sealed"), world.max_steps, world.tasks("search"))


@pytest.mark.parametrize("looks", [False, True])
def test_the_constant_is_chosen_on_search_alone(looks: bool) -> None:
    world = Quiz(looks)
    answer = best_constant(world, world.tasks("search"), 4)
    assert answer is not None and (answer.action, answer.solved, answer.tasks, str(answer)) == ("no", 3, 8, "'no'")
    assert world.played["sealed"] == world.played["gate"] == 0
    # "yes" would be better on sealed.
    assert all_floors(world).rows() == [("null agent", 0), ("constant", 2), ("oracle", 8)]


def test_an_environment_may_name_its_candidates() -> None:
    class Named(Quiz):
        def constants(self) -> list[Action]:
            return ["maybe", "yes", "7"]

    world = Named()
    assert best_constant(world, world.tasks("search"), 4).action == "yes"  # type: ignore[union-attr]
    assert all_floors(world).constant == 3

    class Single(Quiz):
        def constants(self) -> list[Action]:
            return ["no"]

    single = Single()
    answer = best_constant(single, single.tasks("search"), 4)
    assert answer is not None and (answer.action, answer.tasks, single.played["search"]) == ("no", 0, 0)


@pytest.mark.parametrize("given", ["yes", 5, [3], None])
def test_candidates_of_another_shape_are_told(given: Any) -> None:
    world: Any = Quiz()
    world.constants = lambda: given
    with pytest.raises(EnvironmentFault, match="constants must return a list of actions"):
        best_constant(world, world.tasks("search"), 4)


def test_candidates_that_cannot_be_had_are_told() -> None:
    world: Any = Quiz()
    world.constants = lambda: {}["answers"]
    with pytest.raises(EnvironmentFault, match="constants raised KeyError"):
        best_constant(world, world.tasks("search"), 4)


def test_without_an_oracle_there_is_no_constant_and_no_ceiling() -> None:
    class Bare(Quiz):
        oracle = None  # type: ignore[assignment]

    assert all_floors(Bare()).rows() == [("null agent", 0)]


def test_without_search_tasks_there_is_no_constant() -> None:
    world = Quiz(answers={**ANSWERS, "search": ()})
    assert all_floors(world).rows() == [("null agent", 0), ("oracle", 8)]


def test_an_oracle_that_solves_nothing_names_no_candidate() -> None:
    class Wrong(Quiz):
        def oracle(self, task: Task) -> Policy:
            return lambda _observation, _info: "wrong"

    assert all_floors(Wrong()).rows() == [("null agent", 0), ("oracle", 0)]


def test_the_first_option_counts_where_actions_are_listed() -> None:
    world = CorridorWorld()
    found = all_floors(world)
    # "left" comes first; "right", which ends every walk, is the constant.
    assert (found.null, found.first, found.constant, found.oracle) == (0, 0, 8, 8)
    assert found.answer is not None and found.answer.action == "right"


def test_a_world_that_breaks_is_solved_by_nobody() -> None:
    found = all_floors(CorridorWorld(fault="reset"))
    assert found.rows() == [("null agent", 0), ("oracle", 0)]


def test_tables_has_a_constant_answer_and_no_options() -> None:
    found = all_floors(load_environment("tables"))
    assert (found.null, found.first, found.oracle) == (0, None, 24)
    assert found.constant == 1 and str(found.answer) == 'commit_final_answer({"answers": ["4"]})'


def test_a_slow_environment_is_not_searched_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.rollout.floors.SECONDS", 0.0)
    world = Quiz()
    answer = best_constant(world, world.tasks("search"), 4)
    assert answer is not None and world.played["search"] == 1


def test_the_random_agent_draws_options_calls_or_words() -> None:
    tool = {
        "function": {"name": "say", "parameters": {"properties": {"text": {"type": "string"}}, "required": ["text"]}}
    }
    draw = random_option("0")
    assert draw("here", {"public": {"admissible": ["a", "b"]}}) in ("a", "b")
    call = draw("here now", {"public": {"instruction": "go", "tools": [tool]}})
    assert isinstance(call, dict) and call["name"] == "say" and call["arguments"]["text"] in ("go", "here", "now")
    assert set(str(draw("here now", {"public": {}})).split()) <= {"here", "now"}
    letters = {"public": {"admissible": list("abcdefgh")}}
    one, two = random_option("7"), random_option("7")
    assert [one("x", letters) for _ in range(9)] == [two("x", letters) for _ in range(9)]


def test_a_process_names_its_candidates(tmp_path: Path) -> None:
    folder = new("mine", tmp_path)
    source = (folder / "env.py").read_text("utf-8")
    told = "    def constants(self):\n        return ['take the box', 'open the door']\n\n"
    (folder / "env.py").write_text(source.replace("    def make(self)", f"{told}    def make(self)", 1), "utf-8")
    world: Any = load_environment(str(folder))
    answer = best_constant(world, list(world.tasks("search"))[:2], world.max_steps)
    assert answer is not None and answer.tasks == 2 and answer.action in ("take the box", "open the door")
    world.close()
