"""Installations: whole or not at all, with uv or pip, from a wheel that the test writes itself."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from harnesslab.envtools import install, packages, pythons, remove
from harnesslab.envtools.progress import Bar
from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.rollout.process.folder import EnvFolder
from harnesslab.rollout.process.load import how
from harnesslab.rollout.process.venv import venv_of
from harnesslab.rollout.registry import load_environment
from tests.rollout.process.test_folder import ENV

CODE = ENV.replace("\nclass", "\nfrom tiny_of_ours import NUMBER\n\nclass", 1).replace('"1"', "str(NUMBER)")


def wheel(folder: Path, number: int) -> Path:
    """A wheel of one module that holds one number."""
    info = "tiny_of_ours-1.0.dist-info"
    files = {
        "tiny_of_ours.py": f"NUMBER = {number}\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-of-ours\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(text)}")
    path = folder / "tiny_of_ours-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": "\n".join([*lines, f"{info}/RECORD,,\n"])}.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnvFolder:
    """An environment that needs the wheel."""
    monkeypatch.setenv("HARNESSLAB_ENVS", str(tmp_path / "envs"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "env.toml").write_text('title = "small"', "utf-8")
    (folder / "env.py").write_text(CODE, "utf-8")
    (folder / "requirements.txt").write_text(f"tiny-of-ours @ {wheel(tmp_path, 42).as_uri()}\n", "utf-8")
    return EnvFolder(folder)


def left(small: EnvFolder) -> list[str]:
    return sorted(path.name for path in venv_of(small).root.parent.iterdir() if path.is_dir())


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_it_runs_in_its_own_python(small: EnvFolder, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if tool == "pip":
        monkeypatch.setattr(packages, "find_uv", lambda: None)
    elif packages.find_uv() is None:
        pytest.skip("uv is not here")
    name = str(small.path)
    root = install(name, progress=False)
    assert json.loads(venv_of(small).stamp.read_text("utf-8"))["tool"] == tool and how(small) == "own Python"
    world: Any = load_environment(name)
    assert world.version == "42"
    world.close()
    stamp = venv_of(small).stamp
    before = stamp.stat().st_mtime_ns
    assert install(name, progress=False) == root and stamp.stat().st_mtime_ns == before, "it is there already"
    assert remove(name) == [root]
    assert left(small) == [] and how(small) == ""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A private Python that is a link to ours, so that a test need not make one."""

    class Linked(packages.PipInstaller):
        def make(self, bar: Bar) -> None:
            self._venv.python.parent.mkdir(parents=True)
            self._venv.python.symlink_to(sys.executable)

        def add(self, arguments: list[str], bar: Bar) -> None:
            packages.run([sys.executable, "-c", "print('Collecting tiny-of-ours')"], "small", bar)

    monkeypatch.setattr("harnesslab.envtools.installation.installer", Linked)


@pytest.mark.usefixtures("quick")
def test_an_environment_that_does_not_start_is_not_kept(small: EnvFolder) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"'small' does not start: .*No module named 'tiny_of_ours'"):
        install(str(small.path), progress=False)
    assert left(small) == []


@pytest.mark.usefixtures("quick")
def test_an_interrupt_leaves_nothing(small: EnvFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Bar, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        install(str(small.path), progress=False)
    assert left(small) == []


@pytest.mark.usefixtures("quick")
def test_what_was_cut_off_is_made_anew_and_what_is_old_goes_last(small: EnvFolder) -> None:
    (small.path / "env.py").write_text(ENV, "utf-8")
    venv = venv_of(small)
    (venv.root / "lib").mkdir(parents=True)
    install(str(small.path), progress=False)
    assert venv.ready() and not (venv.root / "lib").exists()
    (small.path / "requirements.txt").write_text("other-of-ours==1\n", "utf-8")
    newer = venv_of(small)
    assert newer.root != venv.root and newer.others() == [venv.root]
    install(str(small.path), progress=False)
    assert left(small) == [newer.root.name]


def test_what_cannot_be_had_is_told_in_the_installers_words(small: EnvFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(packages.PipInstaller):
        def make(self, bar: Bar) -> None:
            code = "import sys; print('Collecting x'); print('ERROR: no such package', file=sys.stderr); sys.exit(1)"
            packages.run([sys.executable, "-c", code], "small", bar)

    monkeypatch.setattr("harnesslab.envtools.installation.installer", Failing)
    with pytest.raises(EnvironmentUnavailable, match=r"(?s)packages of 'small'.*nothing was left.*no such package"):
        install(str(small.path), progress=False)
    assert left(small) == []


def test_names(small: EnvFolder) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"environment folder 'nothing'\. Available: .*babyai"):
        install("nothing")
    (small.path / "requirements.txt").write_text("", "utf-8")
    with pytest.raises(ConfigError, match="'small' needs no installation"):
        install(str(small.path))


def test_pythons(tmp_path: Path) -> None:
    assert pythons.find_python("x", ">=3.11") == sys.executable
    ours = f"3.{sys.version_info.minor}"
    assert pythons.find_python("x", ">=3.11", sys.executable) == sys.executable
    with pytest.raises(EnvironmentUnavailable, match=rf"needs Python <3\.9; '{sys.executable}' is {ours}"):
        pythons.find_python("x", "<3.9", sys.executable)
    with pytest.raises(EnvironmentUnavailable, match=r"needs Python >=3\.99 but none was found\. Install one, or uv"):
        pythons.find_python("x", ">=3.99")
    with pytest.raises(EnvironmentUnavailable, match=r"Could not run a Python '3\.98'"):
        pythons.find_python("x", ">=3.11", "3.98")
    with pytest.raises(ConfigError, match="which is not a version specifier"):
        pythons.find_python("x", "about 3.11")
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    broken.chmod(0o755)
    assert pythons.version_of(str(broken)) is None


def test_the_bar_counts_each_package_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lines = ["Collecting a==1", "Collecting A==1", " + b==2".strip(), "Requirement already satisfied: c in /x", "noise"]
    with Bar("small", 4, True) as bar:
        for line in lines:
            bar.line(line)
        assert bar._bar.n == 3
        bar.finish()
        bar.step()
        assert bar._bar.n == 4
    assert "small" in capsys.readouterr().err


def test_a_log_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("small", 4, True) as bar:
        bar.line("Collecting a==1")
        bar.finish()
    assert capsys.readouterr().err == ""
