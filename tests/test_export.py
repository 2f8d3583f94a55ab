"""A harness outside its lab: a plain folder that says where it comes from, and whose bytes follow from the commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError, HarnessFileError, HarnesslabError, StoreError
from tests.conftest import always
from tests.test_labfolder import git

RESCUE = b"kind: rescue\nabout: 'reads <b>bold</b> | replies'\n"
TRAP = "from pathlib import Path\nPath({marker!r}).write_text('ran')\n"


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def commit(lab: hl.Lab, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        target = lab.path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())
    git(lab.path, "add", "-A")
    git(lab.path, "commit", "-qm", "Change *it* <script>")


def test_an_export_is_the_harness_and_where_it_comes_from(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab = open_lab()
    commit(lab, {"action/rescue.yaml": RESCUE, "LICENSE": "Free.", "notes.txt": "mine", "program.md": "rules"})
    hl.Trainer(lab, always("right"), settings={"progress": False}).open_sealed()
    out = lab.export(tmp_path / "new" / "out", licence="MIT")
    files = tree(out)
    assert set(files) == {"harness.toml", "action/rescue.yaml", "LICENSE", "provenance.json", "README.md"}
    assert files["action/rescue.yaml"] == RESCUE
    harness = hl.Harness.load(out)
    assert [one.name for one in harness.interventions] == ["action/rescue"]
    about = harness.provenance
    assert about["commit"] == lab.repo.baseline() and about["harness"]["digest"] == harness.digest
    assert about["environment"] == {"name": "corridor", "version": "1"}
    assert about["backbone"]["model"] == "always right"
    assert about["licence"] == {"name": "MIT", "files": ["LICENSE"]}
    model, control = about["sealed"]
    assert (model["control"], control["control"]) == (False, True)
    assert model["trained"]["solved"] == model["trained"]["of"] == 8 and model["start"]["solved"] == 8
    assert model["trained"]["low"] < 100 == model["trained"]["high"]
    card = files["README.md"].decode()
    assert "8/8 | 100% (95% CI" in card and "random (control)" in card
    assert "<b>" not in card.replace("\\<b", "") and "<script>" not in card.replace("\\<script", "")


def test_the_same_commit_exports_the_same_bytes(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab = open_lab()
    trainer = hl.Trainer(lab, always("right"), settings={"progress": False})
    trainer.open_sealed()
    first = tree(lab.export(tmp_path / "a"))
    trainer.open_sealed()
    assert tree(lab.export(tmp_path / "b")) == first, "the first sealed result counts"
    assert tree(lab.export(tmp_path / "a")) == first, "an earlier export is replaced"
    look = hl.Lab.look(lab.path)
    assert tree(look.export(tmp_path / "c", commit=lab.repo.baseline()[:12])) == first
    look.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c", "lab"], "nothing is left beside it"


def test_a_lab_without_records_exports_too(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab = open_lab()
    git(tmp_path, "clone", "-q", str(lab.path), "clone")
    clone = hl.Lab.look(tmp_path / "clone")
    out = clone.export(tmp_path / "out")
    clone.close()
    assert hl.Harness.load(out).provenance["sealed"] == []
    assert "no held-out result" in (out / "README.md").read_text()


def test_exporting_a_foreign_lab_runs_nothing(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab, marker = open_lab(), tmp_path / "marker"
    trap = TRAP.format(marker=str(marker))
    commit(lab, {"action/trap.py": trap, "sitecustomize.py": trap, "conftest.py": trap, "yaml.py": trap})
    git(lab.path, "config", "core.fsmonitor", f"touch {marker}")
    git(lab.path, "config", "core.pager", f"touch {marker}")
    command = [sys.executable, "-m", "harnesslab", "export", str(lab.path), str(tmp_path / "out")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not marker.exists()
    assert done.stdout.strip() == str(tmp_path / "out")
    assert "action/trap | Python" in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(HarnessFileError, match="defines none of the functions"):
        hl.Harness.load(tmp_path / "out")
    assert not marker.exists()


def test_links_and_odd_names_stay_what_they_are(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab, secret = open_lab(), tmp_path / "secret"
    secret.write_text("kind: rescue\n")
    (lab.path / "action").mkdir()
    (lab.path / "action" / "link.yaml").symlink_to(secret)
    commit(lab, {"action/a b é | [x](y).yaml": RESCUE, "action/.hidden.yaml": "not: one"})
    out = lab.export(tmp_path / "out")
    assert set(tree(out)) == {"harness.toml", "action/a b é | [x](y).yaml", "provenance.json", "README.md"}
    assert "\\[x\\](y)" in (out / "README.md").read_text()
    assert hl.Harness.load(out).interventions[0].name == "action/a b é | [x](y)"


def fill(folder: Path, how: str) -> Path:
    """A target that must not be written to, and stays as it is."""
    if how == "file":
        folder.write_text("mine")
    elif how == "below a file":
        folder.write_text("mine")
        return folder / "out"
    elif how == "other files":
        folder.mkdir()
        (folder / "mine.txt").write_text("mine")
    return folder


@pytest.mark.parametrize("how", ["file", "below a file", "other files", "export with more", "lab", "in lab", "around lab", "link to lab"])  # fmt: skip
def test_a_target_that_holds_anything_else_is_refused(how: str, open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab = open_lab("around/lab")
    out = {"lab": lab.path, "in lab": lab.path / "out", "around lab": tmp_path / "around"}.get(how)
    if how == "link to lab":
        (out := tmp_path / "link").symlink_to(lab.path)
    elif how == "export with more":
        (lab.export(out := tmp_path / "out") / "notes.md").write_text("mine")
    out = out or fill(tmp_path / "out", how)
    before = tree(tmp_path)
    with pytest.raises(StoreError, match=r"folder|export|path"):
        lab.export(out)
    assert {name: data for name, data in tree(tmp_path).items() if ".git/" not in name} == {
        name: data for name, data in before.items() if ".git/" not in name
    }


@pytest.mark.parametrize("how", ["nothing", "empty", "link"])
def test_a_target_that_is_free_is_taken(how: str, open_lab: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    if how != "nothing":
        out.mkdir()
    if how == "link":
        out = tmp_path / "link"
        out.symlink_to(tmp_path / "out")
    found = open_lab().export(str(out))
    assert found == tmp_path / "out" and hl.Harness.load(found).provenance


@pytest.mark.parametrize("licence", ["", " MIT", "MIT\n", "<b>", "x" * 101, "../x"])
def test_a_licence_is_a_name(licence: str, open_lab: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SPDX"):
        open_lab().export(tmp_path / "out", licence=licence)


@pytest.mark.parametrize("name", ["nowhere", "HEAD~9", "--all"])
def test_an_unknown_commit_is_named(name: str, open_lab: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(HarnesslabError):
        open_lab().export(tmp_path / "out", commit=name)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", [b"{", b"[]", b"{}", b'{"format": 2}', b"\xff"])
def test_a_damaged_provenance_is_named(text: bytes, open_lab: Callable[..., Any], tmp_path: Path) -> None:
    out = open_lab().export(tmp_path / "out")
    (out / "provenance.json").write_bytes(text)
    harness = hl.Harness.load(out)
    with pytest.raises(HarnessFileError, match="provenance"):
        harness.provenance  # noqa: B018


def test_a_changed_file_shows(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    out = open_lab().export(tmp_path / "out")
    (out / "action").mkdir()
    (out / "action" / "mine.yaml").write_bytes(RESCUE)
    harness = hl.Harness.load(out)
    assert harness.digest != harness.provenance["harness"]["digest"]
    assert json.loads((out / "provenance.json").read_text()) == harness.provenance


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab, shut = open_lab(), tmp_path / "shut"
    shut.mkdir(mode=0o500)
    with pytest.raises(StoreError, match="cannot be written"):
        lab.export(shut / "out")
