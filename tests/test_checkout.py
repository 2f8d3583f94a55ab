"""The lab's folder as people use it: notes, keys and notebooks lie beside the harness, and other commits are checked out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.errors import ConfigError, HarnessFileError, LeftOut, NotOnMain, SplitWarning
from harnesslab.harness.base import LAYERS
from harnesslab.harness.files import check_changes, has_meaning
from harnesslab.magics import CellError, intervention
from harnesslab.trainer.proposal import Proposal, Proposals
from tests.test_labfolder import git

HINT = "kind: prompt\nparams: {text: Go right.}\n"
BESIDE = [
    ".env", "id_rsa", "server.key", "analysis.ipynb", ".ipynb_checkpoints/analysis-checkpoint.ipynb", "data.csv", "program.md",
    "contract/.ipynb_checkpoints/hint-checkpoint.yaml", "contract/hint.yaml~", "contract/#hint.yaml#", "contract/.hint.yaml.swp",
    "contract/._hint.yaml", "contract/hint.yaml.bak", "contract/hint.yml", "contract/deep/hint.yaml", "hint.yaml", "setup.py",
    "src/app.py", "Contract/hint.yaml", "harness.toml.orig", "sub/harness.toml", "kontrakt/ü b.yaml", "README.md", ".gitignore",
]  # fmt: skip


def write(lab: Any, path: str, text: str = HINT) -> None:
    (lab.path / path).parent.mkdir(parents=True, exist_ok=True)
    (lab.path / path).write_text(text, "utf-8")


def trainer(lab: Any, estimator: Any = None) -> hl.Trainer:
    return hl.Trainer(
        lab, hl.LLM.null("Action: right"), estimator or hl.ManualEstimator(scan=False), settings={"progress": False}
    )


@pytest.mark.parametrize("path", BESIDE)
def test_only_harness_files_are_proposed(path: str, open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    write(lab, path)
    write(lab, "contract/mine.yaml")
    with pytest.warns(LeftOut) as told:
        assert lab.edits() == {"contract/mine.yaml": HINT}
    said = str(told[0].message)
    assert len(told) == 1 and path in said and "\n" not in said and "contract/" in said


def test_what_was_meant_as_an_intervention_is_told_first_and_why(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    for path in [*(f"a{n}.csv" for n in range(40)), "contract/hint.yml"]:
        write(lab, path)
    write(lab, "skill/big.yaml", "x" * 300_000)
    (lab.path / "skill" / "binary.yaml").write_bytes(b"\xff\xfe\0\1")
    (lab.path / "skill" / "link.yaml").symlink_to("/etc/hostname")
    with pytest.warns(LeftOut) as told:
        assert lab.edits() == {}
    said = str(told[0].message)
    assert "contract/hint.yml (interventions end in .yaml; rename the file)" in said
    assert "skill/big.yaml (300000 bytes, more than" in said and "skill/binary.yaml (not UTF-8)" in said
    assert "skill/link.yaml (not a plain file)" in said and "and 39 more" in said


def test_the_usual_edits(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    write(lab, "harness.toml", (lab.path / "harness.toml").read_text("utf-8") + "\n# mine\n")
    write(lab, "action/mit leerzeichen ü.yaml")
    write(lab, "action/own.py", "def realize(context, proposal): return None\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SplitWarning)
        assert set(lab.edits()) == {"harness.toml", "action/mit leerzeichen ü.yaml", "action/own.py"}
        (lab.path / "harness.toml").unlink()
        assert lab.edits()["harness.toml"] is None


@pytest.mark.parametrize("path", BESIDE)
@pytest.mark.parametrize("text", ["SECRET=1\n", None], ids=["write", "delete"])
def test_no_road_lets_another_file_into_a_candidate(path: str, text: str | None, open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    estimator = hl.ManualEstimator(scan=False)
    with pytest.raises(HarnessFileError):
        estimator.add_files({"contract/mine.yaml": HINT, path: text})
    if text is not None:
        with pytest.raises((HarnessFileError, ConfigError)):
            estimator.add_text(path, text)
    forced = Proposal({"contract/mine.yaml": HINT, path: text}, "contract", "prompt", "contract/mine", "both")
    made = trainer(lab, estimator)
    for act in (
        made.evaluate,
        lambda item: made.accept(item, reason="sure"),
        lambda item: made.reject(item, reason="no"),
    ):
        with pytest.raises(HarnessFileError):
            act(forced)
    assert lab.repo.candidates().total == 0
    if text is not None and not path.startswith("#"):
        with pytest.raises(CellError):
            intervention(f"'{path}'", text, {})


def test_an_estimator_that_proposes_another_file_is_refused_by_name(open_lab: Callable[..., Any]) -> None:
    class Careless:
        def propose(self, failures: Any, harness: Any, history: Any = ()) -> Proposals:
            good = Proposal({"contract/mine.yaml": HINT}, "contract", "prompt", "contract/mine", "good")
            bad = Proposal({".env": "KEY=1"}, "base", "files", ".env", "bad")
            return Proposals([good, bad])

    made = trainer(open_lab(), Careless())
    proposals = made.propose(made.diagnose(made.measure()))
    assert [each.name for each in proposals] == ["contract/mine"]
    assert proposals.refused[0][0] == ".env" and "not a file of a harness" in proposals.refused[0][1]


def test_edited_files_of_other_kinds_are_no_proposals_in_waiting(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    write(lab, ".env", "KEY=1\n")
    write(lab, "contract/mine.yaml")
    made = trainer(lab)
    assert made.propose(made.diagnose(made.measure())).edited == ("contract/mine.yaml",)


@given(
    folder=st.sampled_from(["", *LAYERS, "src", ".ipynb_checkpoints", "contract/.ipynb_checkpoints", "action/deep"]),
    name=st.text(st.sampled_from("ab.~#_ü-"), max_size=6),
    end=st.sampled_from([".yaml", ".py", ".yml", ".ipynb", "", ".yaml~", ".swp", ".toml"]),
)
def test_what_may_be_changed_is_what_is_loaded(folder: str, name: str, end: str) -> None:
    path = f"{folder}/{name}{end}" if folder else f"{name}{end}"
    try:
        check_changes([path])
    except HarnessFileError:
        assert not has_meaning(path)
    else:
        assert has_meaning(path)
        assert path == "harness.toml" or (
            folder in LAYERS and not f"{name}{end}".startswith(".") and end in (".yaml", ".py")
        )


@pytest.fixture
def moved(open_lab: Callable[..., Any]) -> tuple[Any, str]:
    """A lab with one promotion, and the commit before it."""
    lab = open_lab()
    start = lab.repo.baseline()
    lab.ledger.promote(lab.repo.propose({"skill/new.yaml": HINT}, "new").id, {})
    return lab, start


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("checkout", "-q", "--detach"), "detached"),
        (("checkout", "-q", "-b", "mine"), "on branch 'mine'"),
        (("checkout", "-q", "--orphan", "empty"), "no commit"),
    ],
    ids=["detached", "branch", "unborn"],
)  # fmt: skip
def test_promotions_are_no_deletions_of_mine(
    place: tuple[str, ...], words: str, moved: tuple[Any, str], open_lab: Callable[..., Any]
) -> None:
    lab, start = moved
    git(lab.path, *place, start)
    with pytest.warns(NotOnMain, match=words) as told:
        assert lab.edits() == {}
    assert len(told) == 1 and "git switch main" in str(told[0].message)
    assert words in repr(lab)
    with pytest.warns(NotOnMain, match=words):
        open_lab(lab.path)


def test_an_edit_on_an_older_commit_is_that_edit_alone(moved: tuple[Any, str]) -> None:
    lab, start = moved
    git(lab.path, "checkout", "-q", "--detach", start)
    write(lab, "contract/mine.yaml")
    with pytest.warns(NotOnMain):
        assert lab.edits() == {"contract/mine.yaml": HINT}


def test_on_main_nothing_is_said(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SplitWarning)
        lab = open_lab("lab")
        assert lab.edits() == {} and "HEAD" not in repr(lab)
        git(tmp_path, "clone", "-q", "lab", "copy")
        assert open_lab("copy").edits() == {}
