"""Labs for the store's tests: real git, a bare environment, a path that asks for trouble."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnesslab.store import LabRepo

FILES = {"harness.toml": "name = 'test'\n", "skill/plan.yaml": "text: one\ntext2: two\ntext3: three\n"}


@pytest.fixture(autouse=True)
def no_identity(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """git as on a fresh machine: no identity, no configuration, no variables of a surrounding hook."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a space and umlauts in its name, not made yet."""
    return tmp_path / "Küche Übung 1"


@pytest.fixture
def repo(folder: Path) -> Iterator[LabRepo]:
    """A fresh lab with two files."""
    lab = LabRepo.create(folder, FILES)
    yield lab
    lab.close()


@pytest.fixture
def git(folder: Path) -> Callable[..., str]:
    """Runs plain git in the lab, as a user would at a terminal."""

    def run(*args: str, check: bool = True) -> str:
        command = ["git", "-c", "user.name=A user", "-c", "user.email=user@example.org", *args]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if check:
            assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
