"""A lab from somebody else is data: opening it runs nothing that it names, unless the caller named it or trusts it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError, EnvironmentUnavailable, HarnessFileError, HarnesslabError, OrderError
from harnesslab.rollout.registry import GROUP
from tests.test_labfolder import MANIFEST, commit, git, listing
from tests.worlds import CorridorWorld

TRAP = "from pathlib import Path\nPath({marker!r}).write_text('ran')\n"
WORLD = "from tests.worlds import CorridorWorld\n\ndef go():\n    return CorridorWorld()\n"
ENV_TOML = "title = 'trap'\nfactory = 'env:go'\n[process]\nin_process = {here}\n"
POINTS = f"[{GROUP}]\nkitchen = payload:go\ntrap = payload:go\n"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


@pytest.fixture
def evil(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Makes clones of a lab whose every file that could be run leaves a mark; the kernel works in the clone."""
    before = set(sys.modules)

    def make(environment: str | None, **files: str) -> Path:
        trap = TRAP.format(marker=str(marker)) + WORLD
        content = {
            "harness.toml": MANIFEST,
            "payload.py": trap,
            "env.toml": ENV_TOML.format(here="true"),
            "env.py": trap,
            "child/env.toml": ENV_TOML.format(here="false"),
            "child/env.py": trap,
            "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
            "evil-1.0.dist-info/entry_points.txt": POINTS,
            "sitecustomize.py": trap,
            **files,
        }
        if environment is not None:
            content[".harnesslab/lab.json"] = json.dumps({"environment": environment})
        commit(tmp_path / "origin", content)
        git(tmp_path, "clone", "-q", "origin", "evil")
        monkeypatch.chdir(tmp_path / "evil")
        monkeypatch.syspath_prepend(str(tmp_path / "evil"))
        return tmp_path / "evil"

    yield make
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("payload", "env", "child") or name.startswith("harnesslab_folder_"):
            del sys.modules[name]


NAMED = [
    "payload:go",
    ".",
    "./child",
    "{lab}",
    "{lab}/child",
    "~/../{lab}/child",
    "trap",
    "os:getcwd",
    "builtins:exec",
]


@pytest.mark.parametrize("name", NAMED)
def test_what_a_lab_names_is_not_run(name: str, evil: Callable[..., Path], marker: Path, tmp_path: Path) -> None:
    name = name.format(lab=tmp_path / "evil")
    lab = evil(name)
    with pytest.raises(ConfigError, match=r"pass env=.* or trust=True") as refusal:
        hl.Lab.open(lab)
    assert "\n" not in str(refusal.value)
    assert not marker.exists() and "payload" not in sys.modules and "env" not in sys.modules


def test_a_package_in_the_lab_does_not_stand_in_for_an_installed_one(evil: Callable[..., Path], marker: Path) -> None:
    lab = evil("kitchen")
    try:
        hl.Lab.open(lab).close()
    except ConfigError as error:
        assert "trust=True" in str(error)
    assert not marker.exists()


def test_what_the_caller_names_or_trusts_is_run(evil: Callable[..., Path], marker: Path) -> None:
    lab = evil("payload:go")
    opened = hl.Lab.open(lab, trust=True)
    assert opened.environment.name == "corridor" and marker.exists()
    opened.close()
    marker.unlink()
    named = hl.Lab.open(lab, env="./child")
    assert named.environment.name == "corridor"
    named.close()
    with pytest.raises(ConfigError, match=r"child.*trust=True"):  # it was named then, not now
        hl.Lab.open(lab)


def test_another_environment_can_always_be_named(evil: Callable[..., Path], marker: Path) -> None:
    opened = hl.Lab.open(evil("payload:go"), env=CorridorWorld())
    assert opened.harness().name == "corridor" and not marker.exists()
    opened.close()


@pytest.mark.parametrize("where", ["baseline", "proposal"])
def test_python_interventions_run_confined(where: str, evil: Callable[..., Path], marker: Path) -> None:
    hook = TRAP.format(marker=str(marker)) + "def realize(context, proposal): return None\n"
    lab = evil(None, **({"action/trap.py": hook} if where == "baseline" else {}))
    opened = hl.Lab.open(lab, env=CorridorWorld())
    trainer = hl.Trainer(opened, hl.LLM.null("Action: right"), settings={"progress": False})
    if where == "baseline":
        measured = trainer.measure()
        assert {episode.cause for episode in measured} == {"intervention"} and not any(e.solved for e in measured)
    else:
        with pytest.raises(HarnessFileError, match=r"action/trap\.py, line \d+: fails when it is loaded"):
            trainer.evaluate(hl.ManualEstimator().add_text("action/trap.py", hook))
    assert not marker.exists()
    opened.close()


@pytest.mark.parametrize("command", ["log", "rejected", "pending"])
@pytest.mark.parametrize("name", ["payload:go", "./child", None])
def test_the_command_line_looks_and_runs_nothing(
    command: str, name: str | None, evil: Callable[..., Path], marker: Path
) -> None:
    lab = evil(name)
    before = {path: data for path, data in listing(lab).items() if not path.startswith(".git/")}
    done = subprocess.run(
        [sys.executable, "-c", "from harnesslab.cli import main; main()", "lab", command, str(lab)],
        capture_output=True, text=True, check=False, cwd=lab.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not marker.exists()
    assert {path: data for path, data in listing(lab).items() if not path.startswith(".git/")} == before


def test_looking_at_a_folder_that_is_no_lab(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(HarnesslabError, match="no lab"):
            hl.Lab.look(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_lab_that_is_looked_at_has_no_environment(open_lab: Callable[..., Any]) -> None:
    path = open_lab().path
    looked = hl.Lab.look(path)
    assert len(looked.log()) == 1 and "env=None" in repr(looked)
    with pytest.raises(OrderError, match="env="):
        looked.environment  # noqa: B018
    looked.close()


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "null", '{"environment": 5}', '{"environment": null}', '{"environment": "' + "x" * 5000 + '"}', "[" * 9999],
    ids=["torn", "list", "null", "number", "none", "long", "deep"],
)  # fmt: skip
def test_a_damaged_note_of_the_environment(text: str, evil: Callable[..., Path]) -> None:
    lab = evil(None)
    (lab / ".harnesslab").mkdir()
    (lab / ".harnesslab" / "lab.json").write_text(text, "utf-8")
    with pytest.raises((ConfigError, EnvironmentUnavailable)) as refusal:
        hl.Lab.open(lab)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 1000
