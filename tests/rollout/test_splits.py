"""Tasks that occur in two splits, or twice in one, are found in any environment when its tasks are loaded."""

from __future__ import annotations

import random
import time
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.envtools import new
from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable, RepeatedTask, SplitWarning
from harnesslab.rollout.env import SPLITS, Split, Task, tasks_of
from harnesslab.rollout.registry import load_environment
from harnesslab.rollout.splits import check_splits, warn_of_splits
from harnesslab.rollout.twins import find_twins
from tests.worlds import CorridorWorld

QUESTIONS = (
    "How many files below /usr were modified in the last day?",
    "Which user owns the largest file in the home folder?",
    "Rename every log that is older than a week.",
    "Print the names of all groups that have no members.",
    "Add a line with today's date to the end of notes.txt.",
    "Count the words of the longest line in the manual.",
)


class World(CorridorWorld):
    """Tasks as given: one dict of ``Task`` fields each; families and seeds are filled in."""

    name = "mine"

    def __init__(self, **splits: Any):
        super().__init__()
        self.splits = splits

    def tasks(self, split: Split) -> list[Task]:
        given = self.splits.get(split, KeyError(split))
        if isinstance(given, Exception):
            raise given
        return [
            Task(**{"id": f"{split}-{n}", "split": split, "family": "f", **fields}) for n, fields in enumerate(given)
        ]


class Telling(World):
    """Says what its tasks are about, as an environment does whose options hold ids only."""

    def tasks(self, split: Split) -> list[Task]:
        tasks = super().tasks(split)
        self.texts: dict[str, str] = getattr(self, "texts", {}) | {t.id: str(t.options["ask"]) for t in tasks}
        return [Task(t.id, t.split, t.family, t.seed, {"record": t.id}) for t in tasks]

    def instruction(self, task: Task) -> str:
        return self.texts[task.id]


class Asking(Telling):
    """Shows its instructions only when a task is reset."""

    instruction = None  # type: ignore[assignment]

    def make(self) -> Any:
        env, texts = super().make(), self.texts
        reset = env.reset

        def told(*, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
            observation, info = reset(seed=seed, options=options)
            info["public"]["instruction"] = texts[str((options or {})["record"])]
            return observation, info

        env.reset = told  # type: ignore[method-assign]
        return env


def ask(*texts: str, seed: int = 0) -> list[dict[str, Any]]:
    return [{"options": {"ask": text}, "seed": seed} for text in texts]


def kinds(world: Any, **options: Any) -> set[tuple[str, str, str, str]]:
    return {(t.kind, t.task.id, t.like.id, t.like_split) for t in check_splits(world, **options).twins}


DISTINCT = {"search": ask(*QUESTIONS[:2]), "gate": ask(*QUESTIONS[2:4]), "sealed": ask(*QUESTIONS[4:])}


@pytest.mark.parametrize("make", [World, Telling, Asking])
def test_splits_that_share_nothing_are_fine(make: Callable[..., Any]) -> None:
    found = check_splits(make(**DISTINCT), seconds=10)
    assert (found.twins, found.warning(), dict(found.sizes)) == ((), "", {"search": 2, "gate": 2, "sealed": 2})


@pytest.mark.parametrize("make", [World, Telling, Asking])
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (QUESTIONS[0], "same"),
        ("how many FILES below /usr were modified, in the last day", "same"),
        ("How many files below /usr were modified in the past day?", "near"),
        ("How many files below /etc were modified in the last day?", "near"),
        ("Please: how many files below /usr were modified in the last day?", "near"),
    ],
)
def test_texts_are_compared_wherever_they_are(make: Callable[..., Any], text: str, kind: str) -> None:
    world = make(**{**DISTINCT, "sealed": ask(QUESTIONS[4], text)})
    assert kinds(world, seconds=10) == {(kind, "sealed-1", "search-0", "search")}


ACCENTED = "Zähle die roten Äpfel im Küchenschrank"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ACCENTED, unicodedata.normalize("NFD", ACCENTED)),
        (unicodedata.normalize("NFKD", ACCENTED), ACCENTED),
        ("Count 5 red apples", "Ｃｏｕｎｔ　５　ｒｅｄ　ａｐｐｌｅｓ"),
        ("Count the red apples", "\ufeffCount\u00a0the re\u00add ap\u200dples\u200b"),
        ("Count the red apples", "Count \u2014 the red \u2013 apples\u3002"),
        ("Open the e-mail of the new-comer", "Open the e mail of the new\u2010comer"),
        ("数一数厨房里的红苹果", "数一数厨房里的红苹果。"),
        ("¿Cuántas manzanas hay?", "Cuántas manzanas hay"),
        ("Find the file", "Find the ﬁle"),
    ],
)
def test_how_a_text_is_written_makes_no_difference(one: str, other: str) -> None:
    world = Telling(**{**DISTINCT, "gate": ask(QUESTIONS[2], one), "sealed": ask(QUESTIONS[4], other)})
    assert [(t.kind, t.split, t.like_split) for t in check_splits(world).twins] == [("same", "sealed", "gate")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2+2", "2-2"),
        ("3 * 4", "3 / 4"),
        ("a_b", "a b"),
        ("#5", "@5"),
        ("5%", "5"),
        ("1-2", "1 2"),
        ("x-1", "x 1"),
        ("-", "*"),
    ],
)
def test_signs_are_no_punctuation(one: str, other: str) -> None:
    world = Telling(**{**DISTINCT, "gate": ask(QUESTIONS[2], one), "sealed": ask(QUESTIONS[4], other)})
    assert not check_splits(world).twins


def test_numbers_alone_make_another_task_of_a_pattern() -> None:
    sums = [f"Add {7 * n} to {3 * n + 1} and give the sum as a whole number." for n in range(9)]
    world = World(search=ask(*sums[:3]), gate=ask(*sums[3:6]), sealed=ask(*sums[6:]))
    found = check_splits(world)
    assert {twin.kind for twin in found.twins} == {"numbers"} and found.warning() == ""


def test_a_seed_that_varies_does_not_hide_a_question_in_the_options() -> None:
    world = World(
        search=[{"options": {"ask": text}, "seed": n} for n, text in enumerate(QUESTIONS[:3])],
        gate=[{"options": {"ask": text}, "seed": 9} for text in QUESTIONS[2:4]],
        sealed=ask(*QUESTIONS[4:]),
    )
    assert kinds(world) == {("same", "gate-0", "search-2", "search")}


def test_a_generator_repeats_its_words_under_other_seeds() -> None:
    def drawn(start: int) -> list[dict[str, Any]]:
        return [{"seed": start + n, "options": {"goal": "Bring the guest a clean cup."}} for n in range(5)]

    assert kinds(World(search=drawn(0), gate=drawn(10), sealed=drawn(20))) == set()
    assert kinds(World(search=drawn(0), gate=drawn(4), sealed=drawn(20))) == {("same", "gate-0", "search-4", "search")}


def test_how_a_task_begins_does_not_show_what_its_seed_decides() -> None:
    class Starts(Asking):
        def tasks(self, split: Split) -> list[Task]:
            return [
                Task(t.id, split, "f", 1000 * SPLITS.index(split) + int(t.id[-1]), t.options)
                for t in super().tasks(split)
            ]

    world = Starts(**{**DISTINCT, "sealed": ask(QUESTIONS[4], QUESTIONS[0])})
    found = check_splits(world, seconds=10)
    assert [(twin.kind, twin.task.id, twin.like.id) for twin in found.twins] == [("start", "sealed-1", "search-0")]
    assert found.warning() == ""


@pytest.mark.parametrize(
    "fields",
    [{"seed": 7}, {"options": {"a": 3, "b": [1, 2]}}, {"options": {"name": "box"}, "seed": 3}, {"options": {}}],
)
def test_equal_seeds_and_options_are_the_same_task(fields: dict[str, Any]) -> None:
    other = {"seed": 1, "options": {"a": 9}}
    world = World(search=[fields, other], gate=[fields], sealed=[{"seed": 2}])
    assert kinds(world) == {("same", "gate-0", "search-0", "search")}


def test_an_id_beside_what_makes_the_task_makes_no_other_task() -> None:
    tasks = {
        split: [{"id": f"{split}-{n}", "options": {"id": f"{split}-{n}", "a": a}} for n, a in enumerate(numbers)]
        for split, numbers in (("search", (3, 4)), ("gate", (5, 3)), ("sealed", (6, 7)))
    }
    assert kinds(World(**tasks)) == {("same", "gate-1", "search-0", "search")}


@pytest.mark.parametrize("other", [{}, {"level": 1}, {"source": "std", "level": 2}])
@pytest.mark.parametrize("seeds", [False, True])
def test_an_id_that_names_the_task_is_what_makes_it(other: dict[str, Any], seeds: bool) -> None:
    tasks = {
        split: [{"seed": n * seeds, "options": {"record": f"{split}-{n}", **other}} for n in range(5)]
        for split in SPLITS
    }
    assert kinds(World(**tasks)) == set()


def test_duplicates_within_a_split() -> None:
    world = World(**{**DISTINCT, "gate": ask(*QUESTIONS[2:4], QUESTIONS[2])})
    found = check_splits(world)
    assert kinds(world) == {("same", "gate-2", "gate-0", "gate")}
    assert "1 of 3 gate tasks repeats another one (gate-2 like gate-0)" in found.warning()


def test_the_same_question_about_something_else_is_another_task_of_its_split() -> None:
    about = [{"options": {"ask": QUESTIONS[0], "folder": folder}} for folder in ("a", "b")]
    assert kinds(World(**{**DISTINCT, "search": [*about, *ask(*QUESTIONS[1:3])], "gate": ask(QUESTIONS[3])})) == set()


def test_shared_lines_do_not_make_tasks_alike() -> None:
    rules = (
        "You are given a table of ferries with their home ports, their speeds and the year in which they were built."
    )
    told = {split: ask(*(f"{rules}\n{one['options']['ask']}" for one in tasks)) for split, tasks in DISTINCT.items()}
    assert kinds(World(**told)) == set()


def test_an_id_that_is_used_twice_is_refused(tmp_path: Path) -> None:
    inside = World(**{**DISTINCT, "gate": [{"id": "a"}, {"id": "a", "seed": 2}]})
    with pytest.raises(RepeatedTask, match="'mine' uses the task id 'a' more than once in gate: give each task an id"):
        tasks_of(inside, "gate")
    across = World(**{**DISTINCT, "sealed": [{"id": "search-1", "seed": 9}]})
    with pytest.raises(RepeatedTask, match="'search-1' in search and again in sealed"):
        check_splits(across)
    for world in (inside, across):
        with pytest.raises(RepeatedTask):
            hl.Lab.open(tmp_path / "lab", env=world)
        assert not (tmp_path / "lab").exists()


def test_a_lab_warns_once_with_counts_and_an_example(tmp_path: Path) -> None:
    world = Telling(**{**DISTINCT, "gate": ask(QUESTIONS[0], QUESTIONS[1] + " Tell me."), "sealed": ask(QUESTIONS[0])})
    with pytest.warns(SplitWarning) as caught:
        lab = hl.Lab.open(tmp_path / "lab", env=world)
    assert len(caught) == 1 and caught[0].filename == __file__
    text = str(caught[0].message)
    assert "the only sealed task is also in search: results on sealed do not show" in text
    assert "1 of 2 gate tasks is also in search (gate-0 like search-0)" in text
    assert text.endswith("lab.check_splits() lists them.")
    table = lab.check_splits()
    assert {(row["kind"], row["split"], row["task"], row["in"], row["like"]) for row in table} == {
        ("same", "sealed", "sealed-0", "search", "search-0"),
        ("same", "sealed", "sealed-0", "gate", "gate-0"),
        ("same", "gate", "gate-0", "search", "search-0"),
        ("near", "gate", "gate-1", "search", "search-1"),
    }
    assert QUESTIONS[0] in table[0]["text"] and "instructions" in table.notes[0]


def test_identical_splits_are_named_for_what_they_are(tmp_path: Path) -> None:
    with pytest.warns(SplitWarning, match="all 8 sealed tasks are also in search: results on sealed do not show"):
        hl.Lab.open(tmp_path / "lab", env=CorridorWorld())


@pytest.mark.parametrize(
    ("sealed", "said"),
    [
        ([], "it has no sealed tasks"),
        (KeyError("sealed"), "it has no sealed tasks (the tasks of 'mine' cannot be listed"),
        (EnvironmentFault("there is no split 'sealed'."), "it has no sealed tasks (there is no split 'sealed')"),
    ],
)
def test_a_split_that_is_empty_or_missing(sealed: Any, said: str, tmp_path: Path) -> None:
    with pytest.warns(SplitWarning) as caught:
        hl.Lab.open(tmp_path / "lab", env=World(**{**DISTINCT, "sealed": sealed}))
    assert said in str(caught[0].message)


def test_an_environment_without_its_data_can_be_looked_at() -> None:
    absent = EnvironmentUnavailable("The data is not here. Get it with: harnesslab data get mine")
    with pytest.warns(SplitWarning, match=r"it has no tasks \(The data is not here"):
        warn_of_splits(World(search=absent, gate=absent, sealed=absent))


@pytest.mark.parametrize("wrong", [{"options": None}, {"id": 3}, {"id": ""}])
def test_a_task_of_another_shape_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(EnvironmentUnavailable, match="must return Task objects whose"):
        tasks_of(World(search=[wrong]), "search")


def test_an_instruction_that_cannot_be_had_is_told() -> None:
    class Broken(World):
        def instruction(self, task: Task) -> str:
            raise KeyError(task.id)

    with pytest.raises(EnvironmentUnavailable, match=r"instruction\(\) of 'mine' raised KeyError on task 'search-0'"):
        check_splits(Broken(**DISTINCT))


def test_tasks_that_cannot_be_reset_are_compared_by_seed_and_options() -> None:
    assert {twin.kind for twin in check_splits(CorridorWorld(fault="reset"), seconds=10).twins} == {"same"}


def test_our_own_environments_open_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("kitchen", "tables"):
            warn_of_splits(load_environment(name))


WORDS = ("mug", "jar", "lid", "rack", "bowl", "cup", "tray", "bench", "shelf", "oven")
words = st.lists(st.sampled_from(WORDS), min_size=8, max_size=30)


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=4, max_size=25, unique_by=tuple), st.data())
def test_a_copy_is_always_found_and_one_changed_word_of_many_too(texts: list[list[str]], data: st.DataObject) -> None:
    chosen = data.draw(st.sampled_from(texts))
    place = data.draw(st.integers(0, len(chosen) - 1))
    changed = [*chosen[:place], "x", *chosen[place + 1 :]]
    tasks: list[tuple[Split, Task]] = [("search", Task(f"s{n}", "search", "f")) for n in range(len(texts))]
    tasks += [("gate", Task("copy", "gate", "f")), ("gate", Task("changed", "gate", "f"))]
    spoken = [" ".join(words) for words in [*texts, chosen, changed]]
    found = {twin.task.id: twin for twin in find_twins(tasks, spoken)}
    assert found["copy"].kind == "same" and found["copy"].text == found["copy"].like_text
    if len(chosen) >= 16:
        assert "changed" in found


def test_ten_thousand_tasks_take_seconds() -> None:
    dice = random.Random(0)
    known = [f"word{n}" for n in range(3000)]
    tasks: list[tuple[Split, Task]] = []
    texts: list[str] = []
    for place in range(10_000):
        split = SPLITS[place * 3 // 10_000]
        tasks.append((split, Task(f"t{place}", split, "f", options={"id": f"t{place}"})))
        texts.append(" ".join(dice.choices(known, k=20)))
    for place in range(0, 3000, 100):
        texts[9000 + place // 100] = texts[place].replace(" word", " other", 1)
    start = time.process_time()
    twins = list(find_twins(tasks, texts))
    assert time.process_time() - start < 20
    assert [(twin.kind, twin.like.id) for twin in twins] == [("near", f"t{place}") for place in range(0, 3000, 100)]


def test_a_process_gives_the_texts_of_its_tasks(tmp_path: Path) -> None:
    folder = new("mine", tmp_path)
    source = (folder / "env.py").read_text("utf-8")
    quiet = load_environment(str(folder))
    assert check_splits(quiet).compared == "seeds and options" and check_splits(quiet).warning() == ""
    told = "    def instruction(self, task):\n        return f'Bring the {task.seed % 24} of the old brown boxes.'\n\n"
    (folder / "env.py").write_text(source.replace("    def make(self)", f"{told}    def make(self)", 1), "utf-8")
    telling: Any = load_environment(str(folder))
    found = check_splits(telling)
    assert found.compared.startswith("instructions") and {twin.kind for twin in found.twins} >= {"same"}
    for world in (quiet, telling):
        world.close()  # type: ignore[attr-defined]
