"""What agents without a mind solve is in the sealed table, and whatever can fail there fails before the opening."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import EnvironmentFault
from tests.rollout.test_floors import Quiz
from tests.worlds import CorridorWorld


def trainer(lab: hl.Lab, **settings: Any) -> hl.Trainer:
    llm = hl.LLM.scripted(lambda messages: "yes", name="yes-sayer")
    return hl.Trainer(lab=lab, llm=llm, settings={"progress": False, **settings})


def rows(table: Any) -> dict[str, int]:
    return {row["backbone"]: row["solved"] for row in table if row["harness"] == "none"}


def test_the_best_constant_answer_is_beside_the_model(open_lab: Callable[..., hl.Lab], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    table = trainer(open_lab(env=Quiz())).open_sealed()
    assert rows(table) == {"null agent": 0, "constant": 2, "oracle": 8}
    assert "constant: always 'no', which solved 3 of 8 search tasks" in table.notes
    assert max(map(len, repr(table).splitlines())) <= 100


def test_a_small_search_panel_makes_no_weaker_constant(open_lab: Callable[..., hl.Lab]) -> None:
    table = trainer(open_lab(env=Quiz()), search=1).open_sealed()
    assert rows(table)["constant"] == 2
    assert "constant: always 'no', which solved 3 of 8 search tasks" in table.notes


def test_the_first_option_is_beside_the_model(open_lab: Callable[..., hl.Lab]) -> None:
    table = trainer(open_lab(env=CorridorWorld())).open_sealed()
    assert rows(table) == {"null agent": 0, "first option": 0, "constant": 8, "oracle": 8}


def test_floors_are_of_the_panel_that_is_opened(open_lab: Callable[..., hl.Lab]) -> None:
    made = trainer(open_lab(env=CorridorWorld()), sealed=4, budget=2, leave_out=["sealed-0"])
    table = made.open_sealed()
    assert {row["of"] for row in table} == {4} and rows(table)["oracle"] == rows(table)["constant"] == 2


def test_a_long_constant_is_cut(open_lab: Callable[..., hl.Lab]) -> None:
    world: Any = Quiz()
    world.constants = lambda: ["word " * 400]
    table = trainer(open_lab(env=world)).open_sealed()
    assert len(table.notes[0]) < 100


def test_what_breaks_breaks_before_anything_is_recorded(open_lab: Callable[..., hl.Lab]) -> None:
    world: Any = Quiz()
    world.constants = lambda: 1 / 0
    made = trainer(open_lab(env=world))
    with pytest.raises(EnvironmentFault, match="constants raised ZeroDivisionError"):
        made.open_sealed()
    assert len(made.lab.openings()) == 0 and made.lab.runs.runs(split="sealed", limit=1) == []
