"""`lab.git` is a GitPython Repo to look at; what a lab configures is not run through it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import StoreError
from tests.trainer.test_trainer import RIGHT, trainer


def test_history_and_files(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT)
    for loss in made.epochs(1):
        loss.backward()
        made.optimizer.step()
    repo = lab.git
    assert repo.head.commit.hexsha == lab.repo.baseline() == repo.commit("main").hexsha
    assert [commit.hexsha for commit in repo.iter_commits("main")] == [entry.commit for entry in lab.repo.history()]
    assert "contract/hint0.yaml" in [blob.path for blob in repo.head.commit.tree.traverse()]
    assert "hint0" in repo.git.log("-1", "--format=%s") and not repo.is_dirty()
    assert lab.git is repo and len(repo.git.for_each_ref("refs/harnesslab").splitlines()) == 1


def test_it_is_not_imported_before_it_is_asked_for(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    open_lab()
    program = f"import sys, harnesslab as hl; lab = hl.Lab.look({str(tmp_path / 'lab')!r}); lab.log(); print('git' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def trap(lab: Any, what: str, marker: Path) -> None:
    folder = lab.path / ".git"
    command = f"touch {marker}"
    if what == "hook":
        hook = folder / "hooks" / "pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        hook.chmod(0o755)
        return
    section, name = what.rsplit(".", 1)
    with (folder / "config").open("a", encoding="utf-8") as file:
        file.write(f'[{section}]\n\t{name} = "{command}; false"\n')


@pytest.mark.skipif(os.name == "nt", reason="hooks of a shell")
@pytest.mark.parametrize(
    "what", ["hook", "core.fsmonitor", "core.pager", "core.sshCommand", 'filter "x".clean', "diff.external"]
)
def test_a_lab_that_configures_programs_is_refused(open_lab: Callable[..., Any], tmp_path: Path, what: str) -> None:
    lab, marker = open_lab(), tmp_path / "ran"
    trap(lab, what, marker)
    with pytest.raises(StoreError, match=r"configures git with .*lab\.git is refused") as refusal:
        lab.git  # noqa: B018
    assert "\n" not in str(refusal.value) and not marker.exists()


@pytest.mark.filterwarnings("ignore::harnesslab.errors.UnusualLab")
def test_trusted_or_not_the_configuration_is_not_seen_by_git(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab, marker = open_lab(), tmp_path / "ran"
    trap(lab, "core.fsmonitor", marker)
    own = open_lab(trust=True)
    assert own.git.git.status("--porcelain") == "" and not own.git.is_dirty(untracked_files=True)
    assert not marker.exists()
