"""How tasks were solved: plans cleaned by a backward slice, grouped with holes, told apart by words."""

from __future__ import annotations

from harnesslab.harness.regexes import Regex
from harnesslab.rollout.records import Episode
from harnesslab.trainer.estimators.mining.conditions import Conditions
from harnesslab.trainer.estimators.mining.plans import grouped, phrases, plan_of
from tests.trainer.trajectories import episode


def fetch(task: str, thing: str, source: str, target: str, *, wander: tuple = (), **fields: object) -> Episode:
    first, *rest = (
        (f"go to {source}", f"The {source} holds the {thing}."),
        (f"take {thing}", f"You have the {thing}. Mia is at the {target}."),
        (f"go to {target}", f"You are at the {target}."),
        (f"put {thing} on {target}", "Done."),
    )
    told = {"observation": f"Mia's thing is in the {source}."}
    moves = (*wander, first, *rest) if wander else ((*first, told), *rest)
    values: dict = {"instruction": "Bring what is asked for.", "solved": True} | fields
    return episode(task, *moves, **values)


def wash(task: str, thing: str) -> Episode:
    return episode(
        task,
        (f"take {thing}", f"You have the {thing}."),
        ("go to sink", "Water runs."),
        (f"clean {thing}", f"The {thing} is clean."),
        instruction=f"Clean the {thing}.",
        solved=True,
    )


WANDER = (
    ("go to oven", "It is cold.", {"observation": "Mia's thing is in the drawer."}),
    ("fly", "You cannot fly.", {"invalid": True}),
    ("go to bench", "It is empty."),
)
SOLVED = [
    fetch("a", "red mug", "fridge", "shelf"),
    fetch("b", "pan", "drawer", "table", wander=WANDER),
    wash("c", "knife"),
    wash("d", "plate"),
]


def test_what_an_action_names() -> None:
    assert phrases("put the red mug on shelf 2.") == ["red mug", "shelf 2"]
    assert phrases("look") == []


def test_the_slice_drops_what_nothing_depends_on() -> None:
    plan = plan_of(SOLVED[1])
    assert plan is not None
    assert [step.action for step in plan.steps] == ["go to drawer", "take pan", "go to table", "put pan on table"]
    assert plan.dropped == 3
    assert plan.saw(0) == "Mia's thing is in the drawer."
    assert plan.saw(1) == "The drawer holds the pan."


def test_plans_that_are_equal_with_holes_are_one_group() -> None:
    first, second = grouped(SOLVED)
    assert [plan.episode.task_id for plan in first] == ["a", "b"]
    assert first[0].skeleton == ("go to _", "take _", "go to _", "put _ on _")
    assert first[0].lines == ("go to X", "take Y", "go to Z", "put Y on Z")
    assert second[0].skeleton == ("take _", "go to sink", "clean _")


def test_a_step_that_all_plans_have_is_put_back() -> None:
    alone = plan_of(SOLVED[2])
    assert alone is not None and "go to sink" not in alone.skeleton
    assert [len(plan.steps) for plan in grouped(SOLVED[2:])[0]] == [3, 3]


def test_a_repeated_action_counts_once_the_last_time() -> None:
    moves = (("go to shelf", "x"), ("take mug", "y"), ("go to shelf", "z"), ("put mug on shelf", "Done."))
    plan = plan_of(episode("a", *moves, instruction="The mug belongs on the shelf.", solved=True))
    assert plan is not None
    assert [step.index for step in plan.steps] == [1, 2, 3]


def test_what_made_a_step_possible_is_needed() -> None:
    can = ("go to sink", "go to oven")
    moves = (
        ("go to oven", "Hot.", {"admissible": can}),
        ("go to sink", "Water.", {"admissible": can}),
        ("clean mug", "Clean.", {"admissible": ("clean mug", *can)}),
    )
    plan = plan_of(episode("a", *moves, instruction="Clean the mug.", solved=True))
    assert plan is not None
    assert plan.skeleton == ("go to sink", "clean _")


def test_a_detour_and_the_way_back_are_left_out() -> None:
    can = ("go to shelf", "go to oven")
    moves = (
        ("go to shelf", "The mug is here.", {"admissible": can}),
        ("go to oven", "Hot.", {"admissible": ("take mug", "go to oven")}),
        ("go to shelf", "The mug is here.", {"admissible": can}),
        ("take mug", "Done.", {"admissible": ("take mug", "go to oven")}),
    )
    plan = plan_of(episode("a", *moves, instruction="Fetch something.", solved=True))
    assert plan is not None
    assert [step.index for step in plan.steps] == [2, 3]


def test_tool_calls_make_no_plan() -> None:
    assert plan_of(episode("a", ({"name": "run", "arguments": {}}, "x"), solved=True)) is None
    assert plan_of(episode("a", solved=True)) is None


GROUPS = [
    ["Bring the guest a cup.", "Bring the guest a mug."],
    ["Bring the guest a clean cup.", "Bring the guest a clean pan."],
    ["Read the letter, then bring the cup."],
]


def test_a_word_of_its_own_tells_a_group_apart() -> None:
    conditions = Conditions(GROUPS, [text for group in GROUPS for text in group])
    assert conditions.pattern(1, [0, 2]) == r"(?i)\bclean\b"
    assert conditions.pattern(2, [0, 1]) == r"(?i)\bletter\b"


def test_without_one_the_words_of_the_others_do() -> None:
    pattern = Conditions(GROUPS, []).pattern(0, [1, 2])
    assert pattern is not None
    matching = [[Regex(pattern).search(text) is not None for text in group] for group in GROUPS]
    assert matching == [[True, True], [False, False], [False]]


def test_groups_that_no_word_separates() -> None:
    conditions = Conditions([["Do it."], ["Do it."]], ["Do it."])
    assert not conditions.separable(0, 1)
    assert conditions.pattern(0, [1]) is None
    assert conditions.pattern(0, []) is None
