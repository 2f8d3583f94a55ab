"""Editing a proposal: checked first, honest about who wrote it, and never of a file that is not there."""

from __future__ import annotations

import pytest

from harnesslab.errors import ConfigError, HarnessFileError
from harnesslab.trainer.edit import edited, main_file
from harnesslab.trainer.estimators.manual import ManualEstimator
from harnesslab.trainer.proposal import Proposal

TEXT = "kind: prompt\nabout: One.\nparams:\n  text: one\n"


@pytest.fixture
def proposal() -> Proposal:
    files = {"contract/one.yaml": TEXT, "harness.toml": 'name = "x"\n', "skill/old.yaml": None}
    return ManualEstimator().add_files(files)


def test_the_main_file_is_the_one_that_gave_the_name(proposal: Proposal) -> None:
    assert main_file(proposal) == "contract/one.yaml"
    assert main_file(ManualEstimator().add_files({"skill/old.yaml": None})) is None


def test_an_edit_changes_text_kind_about_and_author(proposal: Proposal) -> None:
    made = edited(proposal, "kind: reminder\nabout: Two.\n")
    assert (made.kind, made.about, made.estimator, made.name) == ("reminder", "Two.", "manual, edited", proposal.name)
    assert made.changes["harness.toml"] == proposal.changes["harness.toml"]
    assert made.content != proposal.content
    assert edited(made, TEXT).estimator == "manual, edited"
    assert edited(made, TEXT).content == proposal.content


def test_another_file_keeps_kind_and_about(proposal: Proposal) -> None:
    made = edited(proposal, 'name = "y"\n', path="harness.toml")
    assert (made.kind, made.about) == (proposal.kind, proposal.about)


def test_a_text_that_is_no_intervention_is_refused(proposal: Proposal) -> None:
    with pytest.raises(HarnessFileError, match=r"contract/one\.yaml, line 1"):
        edited(proposal, "kind: reminderr\n")


@pytest.mark.parametrize("path", ["skill/old.yaml", "action/new.yaml"])
def test_only_files_that_the_proposal_writes_can_be_edited(proposal: Proposal, path: str) -> None:
    with pytest.raises(ConfigError, match=r"it writes contract/one\.yaml, harness\.toml"):
        edited(proposal, TEXT, path=path)


@pytest.mark.parametrize("unconfined", [False, True])
def test_python_is_loaded_once_to_check_it(unconfined: bool) -> None:
    proposal = ManualEstimator().add_text("action/a.py", "def realize(c, p):\n    return None\n")
    with pytest.raises(HarnessFileError, match=r"action/a\.py, line 2: fails when it is loaded: ZeroDivisionError"):
        edited(proposal, "def rank(c, p): pass\n1/0\n", unconfined=unconfined)
    assert edited(proposal, "def rank(c, p):\n    return None\n", unconfined=unconfined).kind == "python"
