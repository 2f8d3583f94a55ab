"""The cell magic: what it takes, what it makes, and what it says when something is wrong."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.harness import known_kinds
from harnesslab.magics import CellError, help_text, intervention
from harnesslab.rollout.records import Episode

pytest.importorskip("IPython")

GOOD = "kind: prompt\nabout: Say more.\nparams:\n  text: Go right.\n"
PYTHON = '"""Lower the case."""\n\ndef realize(context, proposal):\n    return None\n'


@pytest.fixture
def trainer(open_lab: Callable[..., Any]) -> Any:
    settings = {"progress": False, "gate": 2, "search": 2}
    return hl.Trainer(lab=open_lab(), llm=hl.LLM.null("Action: right"), settings=settings)


def test_a_cell_becomes_a_proposal_of_the_latest_trainer(trainer: Any) -> None:
    made = intervention("contract/way.yaml", GOOD, {})
    assert (made.name, made.kind, made.about) == ("contract/way", "prompt", "Say more.")
    assert list(trainer.propose()) == [made]
    assert trainer.lab.repo.candidates().total == 0


def test_running_the_cell_again_replaces_its_proposal(trainer: Any) -> None:
    intervention("contract/way.yaml", GOOD, {})
    second = intervention("contract/way.yaml --about 'Show the way.'", GOOD.replace("right", "left"), {})
    assert list(trainer.propose()) == [second]
    assert second.about == "Show the way."


def test_a_trainer_can_be_named(trainer: Any, open_lab: Callable[..., Any]) -> None:
    other = hl.Trainer(lab=open_lab("other"), llm=hl.LLM.null())
    intervention("contract/way.yaml --trainer mine", GOOD, {"mine": trainer})
    assert len(trainer.propose()) == 1
    assert other.estimator._items == []
    with pytest.raises(CellError, match="no trainer of that name"):
        intervention("contract/way.yaml --trainer nobody", GOOD, {"nobody": 3})


def test_evaluate_measures_at_once(trainer: Any) -> None:
    loss = intervention("contract/way.yaml --evaluate", GOOD, {})
    assert isinstance(loss, hl.Loss)
    assert trainer.lab.repo.candidate(loss.candidate).state == "measured"


def test_evaluate_refuses_a_leak(trainer: Any) -> None:
    loose = hl.Trainer(lab=trainer.lab, llm=trainer.llm, estimator=hl.ManualEstimator(scan=False), settings={"gate": 2})
    told = Episode("search-0", "odd", "Bring the mug to Karenina.", steps=[])
    run_id = trainer.lab.runs.begin_run(trainer.lab.repo.baseline(), {}, split="search")
    trainer.lab.runs.add_episode(run_id, told.summary(), [])
    leak = GOOD.replace("Go right.", "Ask Karenina.")
    with pytest.raises(CellError, match="'Karenina', which only task search-0 knows"):
        intervention("contract/way.yaml --evaluate --trainer strict", leak, {"strict": trainer})
    assert isinstance(intervention("contract/way.yaml --evaluate --trainer loose", leak, {"loose": loose}), hl.Loss)


@pytest.mark.parametrize("unconfined", [False, True])
def test_python_is_loaded_once_to_check_it(open_lab: Callable[..., Any], unconfined: bool) -> None:
    trainer = hl.Trainer(lab=open_lab(unconfined=unconfined), llm=hl.LLM.null())
    made = intervention("action/lower.py", PYTHON, {})
    assert (made.kind, made.about, made.prediction.trigger) == ("python", "Lower the case.", "action/lower")
    with pytest.raises(CellError, match="line 3 of the cell: fails when it is loaded: ZeroDivisionError"):
        intervention("action/other.py", "def rank(c, p): pass\n1/0\n", {})
    assert [proposal.name for proposal in trainer.estimator._items] == ["action/lower"]


@pytest.mark.parametrize(
    ("line", "body", "said"),
    [
        ("contract/way.yaml", GOOD + "  txt: x\n", "line 6 of the cell, key 'params.txt'"),
        ("contract/way.yaml", "kind: promt\n", "line 2 of the cell, key 'kind': unknown kind 'promt'"),
        ("contract/way.yaml", "kind: [\n", "of the cell: not valid YAML"),
        ("action/way.yaml", GOOD, "belongs in contract/"),
        ("action/way.py", "def realize(:\n", "line 2 of the cell: not valid Python"),
        ("contract/way.yaml", "  \n", "has no text"),
        ("way.yaml", GOOD, "not a path of an intervention"),
        ("../x/way.yaml", GOOD, "not a path of an intervention"),
        ("contract/a/b.yaml", GOOD, "not a path of an intervention"),
        ("", GOOD, "required: path"),
        ("contract/way.yaml --bogus", GOOD, "--bogus; write %%intervention"),
        ("contract/way.yaml --about 'x", GOOD, "No closing quotation"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(trainer: Any, line: str, body: str, said: str) -> None:
    with pytest.raises(CellError) as caught:
        intervention(line, body, {})
    assert said in str(caught.value)
    assert caught.value._render_traceback_() == [f"%%intervention: {caught.value}"]
    assert trainer.estimator._items == []


def test_without_a_trainer_it_says_what_to_do_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab.trainer.latest._latest", None)
    with pytest.raises(CellError, match="create one first"):
        intervention("contract/way.yaml", GOOD, {})


def test_load_ext_registers_the_magic() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    hl.load_ipython_extension(shell)
    magic = shell.find_cell_magic("intervention")
    assert "layer/name.yaml" in magic.__doc__
    for name, kind in known_kinds().items():
        for layer in kind.layers:
            assert name in re.search(rf"^    {layer}: (.*)$", magic.__doc__, re.MULTILINE)[1].split(", ")


def test_the_example_of_the_help_can_be_run(trainer: Any) -> None:
    shown = help_text().split("A whole cell:\n\n")[1]
    first, _, body = textwrap.dedent(shown).partition("\n")
    assert first.startswith("%%intervention ")
    made = intervention(first.removeprefix("%%intervention "), body, {})
    assert made.name == "contract/example"
