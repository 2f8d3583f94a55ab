"""The leak scan: literals of one task are refused, what tasks share is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.errors import LeakFound
from harnesslab.trainer.leak import LeakScan
from tests.trainer.trajectories import episode

EPISODES = [
    episode("a", ("look", "The fridge holds a mug."), instruction="Bring the mug to Anna Karenina in room 417."),
    episode("b", ("look", "The fridge holds a pan."), instruction="Bring the pan to Bob. His code is 'blue moon'."),
    episode("c", ("look", "The shelf holds a colander."), instruction="Wash the colander before the guests arrive."),
]


def prompt(text: str) -> dict[str, str]:
    return {"contract/hint.yaml": f"kind: prompt\nparams:\n  text: |\n    {text}\n"}


@pytest.mark.parametrize(
    ("text", "literal", "task"),
    [
        ("Look for Karenina first.", "Karenina", "a"),
        ("The room is 417.", "417", "a"),
        ('Say "blue moon" to open it.', "blue moon", "b"),
        ("Wash the colander at once.", "wash the colander", "c"),
    ],
)
def test_a_literal_of_one_task_is_a_leak(text: str, literal: str, task: str) -> None:
    leaks = LeakScan(EPISODES).find(prompt(text))
    assert (literal, task) in [(leak.literal, leak.task) for leak in leaks]


@pytest.mark.parametrize(
    "text",
    [
        "Bring the thing to its place.",
        "Open the fridge before you look.",
        "Reply with 'Action: <command>' and no more.",
    ],
)
def test_what_tasks_share_is_no_leak(text: str) -> None:
    assert LeakScan(EPISODES).find(prompt(text)) == []


def test_check_names_file_literal_and_task() -> None:
    with pytest.raises(LeakFound, match=r"contract/hint.yaml holds 'Karenina', which only task a knows"):
        LeakScan(EPISODES).check(prompt("Ask Karenina."))


def test_what_the_baseline_says_already_is_no_leak() -> None:
    baseline = {"harness.toml": b'system = "Karenina is the host."'}
    assert LeakScan(EPISODES).find(prompt("Ask Karenina."), baseline) == []


def test_numeric_parameters_and_the_about_line_are_not_text() -> None:
    changes = {"action/snap.yaml": "kind: snap\nabout: seen with Karenina\nparams:\n  threshold: 417\n"}
    assert LeakScan(EPISODES).find(changes) == []


def test_python_and_broken_yaml_are_read_as_text() -> None:
    scan = LeakScan(EPISODES)
    assert scan.find({"action/x.py": "GUEST = 'Karenina'"})
    assert scan.find({"action/x.yaml": "kind: [Karenina"})


def test_a_deleted_file_leaks_nothing() -> None:
    assert LeakScan(EPISODES).find({"contract/hint.yaml": None}) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=60))
def test_no_text_breaks_the_scan(instructions: list[str], text: str) -> None:
    scan = LeakScan([episode(str(n), ("a", word), instruction=word) for n, word in enumerate(instructions)])
    changes = {"contract/x.yaml": text}
    assert scan.find(changes) == scan.find(changes)
