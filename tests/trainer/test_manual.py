"""ManualEstimator: what a person puts in is checked, proposed until it is judged, and scanned for leaks."""

from __future__ import annotations

import pytest

from harnesslab.errors import ConfigError, HarnessFileError
from harnesslab.harness import load_harness
from harnesslab.harness.load import load_yaml
from harnesslab.trainer.estimators.base import Estimator
from harnesslab.trainer.estimators.manual import ManualEstimator
from harnesslab.trainer.failures import Failures
from tests.trainer.trajectories import episode, run

REMINDER = "kind: reminder\nabout: Say the form again.\nwhen:\n  last_invalid: true\n"
FAILURES = Failures(run(episode("a", (None, "?"), instruction="Meet Karenina now."), episode("b", (None, "?"))))
HARNESS = load_harness({"harness.toml": b'name = "demo"\n'})


def test_it_is_an_estimator() -> None:
    assert isinstance(ManualEstimator(), Estimator)
    assert len(ManualEstimator().propose(FAILURES, HARNESS)) == 0


def test_text_becomes_a_proposal_with_its_trigger() -> None:
    estimator = ManualEstimator()
    made = estimator.add_text("contract/form.yaml", REMINDER)
    assert (made.layer, made.kind, made.name, made.about) == (
        "contract", "reminder", "contract/form", "Say the form again.",
    )  # fmt: skip
    assert made.prediction.trigger == "contract/form"
    assert list(estimator.propose(FAILURES, HARNESS)) == [made]


def test_an_object_becomes_the_same_proposal() -> None:
    made = ManualEstimator().add(load_yaml("contract/form.yaml", REMINDER))
    assert made.content == ManualEstimator().add_text("contract/form.yaml", REMINDER).content


def test_edited_files_belong_together() -> None:
    made = ManualEstimator().add_files({"harness.toml": 'name = "x"\n', "skill/old.yaml": None})
    assert (made.layer, made.kind, made.name) == ("base", "files", "harness")
    assert made.about == "Change harness.toml, skill/old.yaml."


def test_python_is_proposed_unread() -> None:
    made = ManualEstimator().add_text("action/fix.py", "def realize(context, proposal): ...\n")
    assert (made.kind, made.name) == ("python", "action/fix")


def test_bad_input_is_refused_at_once() -> None:
    estimator = ManualEstimator()
    with pytest.raises(HarnessFileError, match="line 1, key 'kind'"):
        estimator.add_text("contract/x.yaml", "kind: remindr\n")
    with pytest.raises(ConfigError, match="cannot propose a int"):
        estimator.add(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no file was changed"):
        estimator.add_files({})
    assert len(estimator.propose(FAILURES, HARNESS)) == 0


def test_what_was_judged_on_this_baseline_is_not_proposed_again() -> None:
    estimator = ManualEstimator()
    made = estimator.add_text("contract/form.yaml", REMINDER)
    here = {"content": made.content, "baseline": FAILURES.run.commit, "status": "rejected"}
    assert len(estimator.propose(FAILURES, HARNESS, [here])) == 0
    assert len(estimator.propose(FAILURES, HARNESS, [here | {"baseline": "f" * 40}])) == 1


def test_what_the_harness_holds_already_is_not_proposed() -> None:
    estimator = ManualEstimator()
    made = estimator.add_text("contract/form.yaml", REMINDER)
    assert len(estimator.propose(FAILURES, load_harness(made.apply(HARNESS.files)))) == 0


def test_the_same_change_is_proposed_once_and_clear_forgets() -> None:
    estimator = ManualEstimator()
    estimator.add_text("contract/form.yaml", REMINDER)
    estimator.add_text("contract/form.yaml", REMINDER, about="again")
    assert len(estimator.propose(FAILURES, HARNESS)) == 1
    estimator.clear()
    assert len(estimator.propose(FAILURES, HARNESS)) == 0


def test_a_leak_is_refused_unless_the_scan_is_off() -> None:
    text = "kind: prompt\nparams:\n  text: Ask Karenina.\n"
    strict, loose = ManualEstimator(), ManualEstimator(scan=False)
    for estimator in (strict, loose):
        estimator.add_text("contract/ask.yaml", text)
    proposals = strict.propose(FAILURES, HARNESS)
    assert len(proposals) == 0
    assert "'Karenina', which only task a knows" in proposals.refused[0][1]
    assert len(loose.propose(FAILURES, HARNESS)) == 1
