"""The lab as a handle: made from the starter, found again, started over, and honest about what it lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError, EnvironmentUnavailable, StoreError
from tests.worlds import CorridorWorld


def test_a_new_lab_holds_the_starter_and_a_reopened_one_what_was_learned(tmp_path: Path) -> None:
    lab = hl.Lab.open(tmp_path / "läb mit ü", env="tables")
    start = lab.repo.baseline()
    assert "harness.toml" in lab.repo.files(start) and (lab.path / "harness.toml").is_file()
    lab.close()
    again = hl.Lab.open(tmp_path / "läb mit ü")
    assert again.environment.name == "tables" and again.repo.baseline() == start
    again.close()


def test_a_lab_without_an_environment_says_what_to_pass(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    open_lab("plain")
    with pytest.raises(ConfigError, match="env="):
        hl.Lab.open(tmp_path / "plain")
    with pytest.raises(EnvironmentUnavailable, match="kitchn"):
        hl.Lab.open(tmp_path / "other", env="kitchn")
    assert not (tmp_path / "other").exists()


def test_starting_over_loses_nothing(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    first = open_lab("lab")
    first.repo.propose({"learned.txt": "much"}, "note")
    first.close()
    fresh = open_lab("lab", fresh=True)
    assert fresh.repo.candidates().total == 0
    assert open_lab("lab.1").repo.candidates().total == 1
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(StoreError, match="not a lab"):
        open_lab("papers", fresh=True)
    assert (tmp_path / "papers" / "thesis.txt").exists()


def test_edits_in_the_folder_become_a_proposal(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    assert lab.edits() == {}
    (lab.path / "contract").mkdir()
    (lab.path / "contract" / "mine.yaml").write_text("kind: prompt\nparams: {text: Go right.}\n", encoding="utf-8")
    estimator = hl.ManualEstimator(scan=False)
    estimator.add_files(lab.edits(), about="by hand")
    trainer = hl.Trainer(lab, hl.LLM.null("Action: right"), estimator, settings={"progress": False})
    loss = trainer.evaluate(trainer.propose()[0])
    assert loss.proposal.about == "by hand"
    assert (lab.path / "contract" / "mine.yaml").exists()


def test_loading_a_harness_checks_it(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    assert lab.harness().name == "corridor"
    assert lab.harness() is lab.harness(lab.repo.baseline())
    assert isinstance(lab.environment, CorridorWorld)
    assert "corridor" in repr(lab)
