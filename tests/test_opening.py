"""Opening is looking, tried as a user would: with `hl.Lab`, `hl.Trainer` and the command line, on labs that are odd or hostile.

A canary sees which programs are started, which files are opened for writing, and what has changed outside of the lab. `docs/opening.md`
says for each act what is written and run: the tables there and here are compared.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.cli import main
from harnesslab.errors import HarnesslabError, OrderError
from harnesslab.ledger import Ledger
from harnesslab.store import time_limit
from tests.canary import contents, watching
from tests.odd_labs import ODD
from tests.store import hostile
from tests.worlds import STARTER, CorridorWorld

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore::harnesslab.errors.UnusualLab", "ignore::harnesslab.errors.NotOnMain", "ignore::harnesslab.errors.LeftOut")]  # fmt: skip

FILES = {
    "harness.toml": (STARTER / "harness.toml").read_text("utf-8"),
    "skill/plan.yaml": hostile.PLAN.replace("kind: prompt\ntext: one", "kind: procedure\nparams:\n  text: one"),
    ".gitattributes": hostile.FILES[".gitattributes"],
}
QUICK = {"search": 1, "gate": 1, "sealed": 1, "progress": False}


@dataclass
class Visit:
    """One lab that is visited, and what was opened on the way."""

    path: Path
    ids: hostile.Candidates
    refusals: dict[str, str] = field(default_factory=dict)
    _lab: hl.Lab | None = None

    @property
    def lab(self) -> hl.Lab:
        """The lab, opened at the first use."""
        if self._lab is None:
            self._lab = hl.Lab.open(self.path, env=CorridorWorld())
        return self._lab

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.lab.repo)

    def trainer(self) -> Any:
        """A trainer whose backbone always walks right."""
        backbone = hl.LLM.scripted(lambda messages: "Action: right", name="right")
        return hl.Trainer(self.lab, backbone, estimator=hl.ManualEstimator(), settings=QUICK)

    def close(self) -> None:
        if self._lab is not None:
            self._lab.close()
            self._lab = None


def _look(visit: Visit) -> None:
    looked = hl.Lab.look(visit.path)
    tables = (looked.log(), looked.rejected(), looked.pending(), looked.curve())
    assert all(repr(table) + table._repr_html_() for table in tables) and repr(looked)
    looked.close()


def _resume(visit: Visit) -> None:
    with contextlib.suppress(OrderError):  # nothing was interrupted
        next(iter(visit.trainer().resume()), None)


def _each_diff(visit: Visit) -> None:
    for row in visit.lab.repo.candidates(limit=10).rows:
        with contextlib.suppress(HarnesslabError):
            assert visit.lab.repo.diff(row.parent, row.commit) is not None
        with contextlib.suppress(HarnesslabError):
            assert visit.ledger.plan("promote", row.ref) is not None


CHECKOUT = "files of the checkout"
GIT = {"objects", "refs under `refs/harnesslab`"}
NOTE = {*GIT, "`refs/notes/harnesslab`", "`learning.md`"}
MAIN = {"objects", "`refs/heads/main`", "the index", CHECKOUT, "`learning.md`"}
KINDS: dict[str, str] = {
    r"\.git/objects/.*": "objects", r"\.git/refs/harnesslab/.*": "refs under `refs/harnesslab`", r"\.git/refs/heads/main": "`refs/heads/main`",
    r"\.git/refs/notes/harnesslab": "`refs/notes/harnesslab`", r"\.git/refs/(notes|tags)/harnesslab-sealed": "`refs/notes/harnesslab-sealed`",
    r"\.git/index": "the index", r"\.git/info/exclude": "`.git/info/exclude`", r"\.harnesslab/.*": "`.harnesslab`", r"learning\.md": "`learning.md`",
    r"skill/.*": CHECKOUT,
}  # fmt: skip
"""Files of a lab, and the words of the page for them. What every act may write, the page says above its table."""

ALWAYS = (r"\.git/harnesslab/.*", r"\.git/logs/.*")

ACTS: dict[str, tuple[Callable[[Visit], Any], set[str]]] = {
    "look": (_look, set()),
    "open": (lambda visit: visit.lab, {"`.git/info/exclude`", "`.harnesslab`"}),
    "list": (lambda visit: (visit.lab.log(), visit.lab.curve(), visit.lab.openings(), visit.lab.repo.version(), visit.lab.repo.notices()), set()),
    "look at edits": (lambda visit: visit.lab.edits(), set()),
    "diff": (_each_diff, set()),
    "export": (lambda visit: (visit.lab.repo.files(visit.lab.repo.baseline()), visit.lab.harness()), set()),
    "propose": (lambda visit: visit.lab.repo.propose({"skill/other.yaml": "a: 1\n"}, "x"), GIT),
    "accept": (lambda visit: visit.ledger.promote(visit.ids.fitting, {}), NOTE | MAIN),
    "reject": (lambda visit: visit.ledger.reject(visit.ids.fitting, {}), NOTE),
    "override": (lambda visit: visit.ledger.override(visit.ids.rejected, "me", "because"), NOTE | MAIN),
    "retry": (lambda visit: visit.ledger.retry(visit.ids.late), GIT),
    "undo": (lambda visit: visit.ledger.undo(visit.ids.rejected), NOTE),
    "roll back": (lambda visit: visit.ledger.rollback(visit.ids.first), MAIN),
    "train": (lambda visit: visit.trainer().measure(), {"`.harnesslab`"}),
    "resume": (_resume, set()),
    "open the sealed split": (lambda visit: visit.trainer().open_sealed(), {"objects", "`refs/notes/harnesslab-sealed`", "`.harnesslab`"}),
}  # fmt: skip
"""Each act, and what it writes in the words of the page."""


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, hostile.Candidates]:
    """One innocent lab; tests get copies."""
    folder = tmp_path_factory.mktemp("pattern") / "lab"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        return folder, hostile.make(folder, FILES)


@pytest.fixture
def visit(pattern: tuple[Path, hostile.Candidates], tmp_path: Path) -> Any:
    """A visit to a copy of the lab."""
    made = Visit(hostile.copy(pattern[0], tmp_path / "lab"), pattern[1])
    yield made
    made.close()


@pytest.mark.parametrize("act", ACTS)
def test_an_act_writes_and_runs_what_the_page_says(act: str, visit: Visit) -> None:
    if act == "open":
        (visit.path / ".git" / "info" / "exclude").unlink()
    elif act != "look":
        visit.lab  # noqa: B018
    (visit.path / "learning.md").unlink()  # a rollback may leave its text as it was
    before = contents(visit.path)
    with watching() as seen:
        ACTS[act][0](visit)
    after = contents(visit.path)
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    changed = [name for name in changed if not any(re.fullmatch(each, name) for each in ALWAYS)]
    kinds = {next((word for each, word in KINDS.items() if re.fullmatch(each, name)), name) for name in changed}
    assert kinds == ACTS[act][1]
    assert {Path(program).name for program in seen.programs} <= {"git"} and not seen.hosts
    assert seen.writes_outside(visit.path) == []


def test_the_page_has_each_act_with_what_it_writes() -> None:
    page = (Path(__file__).parents[1] / "docs" / "opening.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    table = {row[0]: row[2] for row in rows[2:]}
    assert table.keys() == ACTS.keys()
    for act, (_, kinds) in ACTS.items():
        assert {word for word in KINDS.values() if word in table[act]} == kinds, act


PROGRAMS = {
    name: lambda lab, outside, plant=plant: plant.place(lab, outside / "it-ran")
    for name, plant in hostile.PLANTS.items()
}
LABS: dict[str, Callable[[Path, Path], None]] = {"plain": lambda lab, outside: None, **PROGRAMS, **ODD}
WAITED_FOR = {"a tree bomb", "an attributes file that is a pipe"}
"""Labs in which each git command runs into its deadline; here it is short."""


def _outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.txt").write_text("mine", "utf-8")
    return outside


@pytest.mark.parametrize("odd", LABS)
def test_no_act_on_an_odd_lab_runs_anything_or_writes_elsewhere(
    odd: str, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = _outside(tmp_path)
    LABS[odd](visit.path, outside)
    monkeypatch.chdir(visit.path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    before = contents(outside)
    with watching() as seen:
        for name, (act, _) in ACTS.items():
            if name == "open the sealed split":
                continue  # it plays every floor, and otherwise is a training and a note
            patience = time_limit(time.monotonic() + 2) if odd in WAITED_FOR else contextlib.nullcontext()
            try:
                with patience:
                    act(visit)
            except HarnesslabError as error:
                assert "\n" not in str(error) and len(str(error)) < 1000
                visit.refusals[name] = str(error)
        visit.close()
    assert contents(outside) == before, "neither the marker of a program nor a written file"
    assert all(Path(program).name == "git" and Path(program).is_absolute() for program in seen.programs)
    assert not any(Path(program).is_relative_to(tmp_path) for program in seen.programs) and not seen.hosts
    assert seen.writes_outside(visit.path) == []
    if odd == "plain":
        # What fails here fails by its own rules: the candidate was decided on, or undone, before.
        assert visit.refusals.keys() <= {"reject", "override", "undo"}


SAID = ["a note of markup", "odd ids", "a name with a line end", "odd records", "clean", "fsmonitor", "submodule", "hooks", "lazy ext", "a program called git",
        "a linked memo in the baseline", "linked records in the baseline", "a pipe to include", "HEAD leads out", "refs to nothing", "plain"]  # fmt: skip


@pytest.mark.parametrize("odd", SAID)
def test_the_command_line_on_an_odd_lab(
    odd: str, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = _outside(tmp_path)
    LABS[odd](visit.path, outside)
    (tmp_path / "train.yaml").write_text(
        "lab: lab\nenv: tables\nsettings: {search: 1, gate: 1, progress: false}\n", "utf-8"
    )
    monkeypatch.setattr("harnesslab.trainer.trainer.open_llm", lambda config, trust: hl.LLM.random(0))
    monkeypatch.chdir(visit.path)
    before = contents(outside)
    with watching() as seen:
        for line in (
            "lab log .",
            "lab rejected .",
            "lab pending .",
            "train ../train.yaml --epochs 1",
            "train ../train.yaml --resume",
        ):
            monkeypatch.setattr(sys, "argv", ["harnesslab", *line.split()])
            with pytest.raises(SystemExit) as ended:
                main()
            said = capsys.readouterr()
            assert not set(said.out + said.err) & set("\x1b\u202e\x07")
            if ended.value.code:
                assert said.err.startswith("error: ") and said.err.count("\n") == 1, said.err
            if odd == "plain":
                assert not ended.value.code or "--resume" in line, said.err
    assert contents(outside) == before and not seen.hosts
    assert {Path(program).name for program in seen.programs} <= {"git"}
    assert seen.writes_outside(visit.path) == []
