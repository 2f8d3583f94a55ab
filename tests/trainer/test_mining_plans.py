"""Plans that solved tasks share: cleaned, abstracted, and filled again so that they are nobody's solution."""

from __future__ import annotations

from trajectories import episode

from harnesslab.rollout.records import Episode
from harnesslab.trainer.estimators.mining.plans import fill, shared_plans


def fetch(task: str, thing: str, source: str, target: str, *, wander: tuple = ()) -> Episode:
    return episode(
        task,
        *wander,
        (f"go to {source}", f"You are at the {source}."),
        (f"take {thing}", f"You have the {thing}."),
        (f"go to {target}", f"You are at the {target}."),
        (f"put {thing} on {target}", "Done."),
        instruction=f"The {thing} is in the {source}. Put the {thing} on the {target}.",
        solved=True,
    )


def wash(task: str, thing: str) -> Episode:
    return episode(
        task,
        (f"take {thing}", f"You have the {thing}."),
        ("go to sink", "You are at the sink."),
        (f"clean {thing}", f"The {thing} is clean."),
        instruction=f"Clean the {thing}.",
        solved=True,
    )


SOLVED = [
    fetch("a", "red mug", "fridge", "shelf"),
    fetch("b", "pan", "drawer", "table", wander=(("go to oven", "You are at the oven."), ("fly", "You cannot fly."))),
    wash("c", "knife"),
    wash("d", "plate"),
]


def test_plans_of_two_tasks_are_shared() -> None:
    plans = shared_plans(SOLVED, SOLVED)
    assert [plan.steps for plan in plans] == [
        ("go to X", "take Y", "go to Z", "put Y on Z"),
        ("take X", "go to sink", "clean X"),
    ]
    assert plans[0].says == ("The Y is in the X.", "Put the Y on the Z.")
    assert plans[0].sees == ("You are at the X.", "You have the Y.", "You are at the Z.", "Done.")
    assert plans[1].words == ("clean",)


def test_a_plan_of_one_task_is_none() -> None:
    assert shared_plans(SOLVED[1:3], SOLVED) == []


def test_a_filling_mixes_tasks() -> None:
    plan = shared_plans(SOLVED, SOLVED)[0]
    filling = plan.recombined()
    assert filling == {"X": "fridge", "Y": "pan", "Z": "shelf"}
    assert fill(plan.steps[3], filling) == "put pan on shelf"


def test_one_slot_cannot_be_mixed() -> None:
    assert shared_plans(SOLVED, SOLVED)[1].recombined() is None


def test_tool_calls_make_no_plan() -> None:
    call = {"name": "run", "arguments": {}}
    assert shared_plans([episode("a", (call, "x"), solved=True), episode("b", (call, "x"), solved=True)], []) == []
