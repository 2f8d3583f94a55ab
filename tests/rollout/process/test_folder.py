"""Folders: what env.toml may say, how one is found, and in which Python it runs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.rollout.process.environment import ProcessEnvironment
from harnesslab.rollout.process.folder import EnvFolder, find_folder, folder_names
from harnesslab.rollout.process.load import how, load_folder
from harnesslab.rollout.process.venv import STAMP, envs_dir, venv_of
from harnesslab.rollout.registry import lasting_name, load_environment
from tests.worlds import STARTER

ENV = """
class World:
    name, version, max_steps = "small", "1", 3
    def __init__(self, size): self.size = size
    def tasks(self, split): return []
    def make(self): raise NotImplementedError
    def oracle(self, task): raise NotImplementedError
    def starter(self): raise NotImplementedError

def environment(size=1):
    return World(size)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a folder with this env.toml and these requirements."""
    monkeypatch.setenv("HARNESSLAB_ENVS", str(tmp_path / "envs"))

    def write(toml: str = 'title = "small"', requirements: str = "", code: str = ENV, name: str = "small") -> EnvFolder:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "env.toml").write_text(toml, "utf-8")
        (folder / "requirements.txt").write_text(requirements, "utf-8")
        (folder / "env.py").write_text(code, "utf-8")
        return EnvFolder(folder)

    return write


@pytest.mark.parametrize(
    "toml, words",
    [
        ("title = 'x'\ntypo = 1", r"env\.toml, key 'typo': Extra inputs"),
        ("", "key 'title': Field required"),
        ("title = 'x'\nfactory = 'env'", "key 'factory'"),
        ("title = 'x'\n[process]\nmemory_mb = -1", "key 'process.memory_mb'"),
        ("title = 'x'\n[process.deadlines]\nstep = 0", "key 'process.deadlines.step'"),
        ("title = ", r"env\.toml, line 1: not valid TOML"),
    ],
)
def test_a_wrong_manifest_names_its_key(write: Any, toml: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        write(toml)


def test_the_digest_is_that_of_what_is_installed(write: Any) -> None:
    one = write(requirements="# a comment\nnumpy==2.0  # why\n\n").digest()
    assert write(requirements="numpy==2.0\n").digest() == one
    assert write(requirements="numpy==2.1\n").digest() != one
    assert write("title='x'\n[python]\nno_deps=['numpy==2.0']").digest() != one
    assert write(requirements="a @ file:///x#sha256=1").requirements() == ["a @ file:///x#sha256=1"]


def test_paths_and_names(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write()
    found = find_folder(str(folder.path))
    assert found is not None and found.name == "small"
    monkeypatch.chdir(tmp_path)
    assert find_folder("./small") is not None and find_folder("small") is None
    with pytest.raises(ConfigError, match=r"no environment in .*/nothing: it has no env.toml"):
        find_folder(str(tmp_path / "nothing"))
    assert {"babyai", "gymtext"} <= set(folder_names())


def test_an_unknown_name_lists_folders_too() -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"Did you mean 'babyai'\?.*gymtext"):
        load_environment("babyay")


def test_without_packages_it_runs_in_a_process_of_this_python(write: Any) -> None:
    folder = write()
    made: Any = load_folder(folder, {"size": 3})
    assert isinstance(made, ProcessEnvironment) and made.launch.python == sys.executable
    assert made.name == "small" and how(folder) == "process"
    made.close()


def test_in_this_process_where_it_may_or_where_it_is_asked_to(write: Any) -> None:
    folder = write('title = "small"\n[process]\nin_process = true')
    made: Any = load_folder(folder, {"size": 3})
    assert made.size == 3 and how(folder) == "this process"
    assert isinstance(load_folder(folder, {}, process=True), ProcessEnvironment)
    other: Any = load_environment(str(write().path), process=False)
    assert other.size == 1
    with pytest.raises(ConfigError, match=r"'colour'.*Its options: size"):
        load_folder(folder, {"colour": 1})


def test_an_edited_folder_is_read_anew(write: Any) -> None:
    first: Any = load_folder(write(), {}, process=False)
    second: Any = load_folder(write(code=ENV.replace('"1"', '"2"')), {}, process=False)
    assert (first.version, second.version) == ("1", "2")


def test_packages_that_are_missing(write: Any) -> None:
    folder = write('title = "s"\n[python]\nsize_mb = 30\nimports = ["no_such_module_1"]', "nothing==1")
    assert how(folder) == ""
    with pytest.raises(EnvironmentUnavailable, match=r"is not installed\. Get it with: .* install /.*small.*30 MB"):
        load_folder(folder, {})
    with pytest.raises(EnvironmentUnavailable, match="cannot run in this process: no_such_module_1 cannot be imported"):
        load_folder(folder, {}, process=False)
    with pytest.raises(EnvironmentUnavailable, match="is not installed"):
        load_folder(folder, {}, process=True)


def test_packages_that_are_here_by_chance(write: Any) -> None:
    folder = write('title = "s"\n[python]\nimports = ["json"]\n[process]\nin_process = true', "json==1")
    assert how(folder) == "this process"
    assert not isinstance(load_folder(folder, {}), ProcessEnvironment)


def test_a_private_python_comes_first_and_only_when_it_is_whole(write: Any) -> None:
    folder = write('title = "s"\n[python]\nimports = ["json"]\n[process]\nin_process = true', "json==1")
    venv = venv_of(folder)
    assert venv.root.parent == envs_dir()
    venv.python.parent.mkdir(parents=True)
    venv.python.symlink_to(sys.executable)
    assert how(folder) == "this process"
    (venv.root / STAMP).write_text(json.dumps({"python": "3.11.7"}), "utf-8")
    assert how(folder) == "own Python"
    made: Any = load_folder(folder, {})
    assert made.launch.python == str(venv.python) and made.launch.home == venv.home
    changed = write('title = "s"', "json==2")
    assert venv_of(changed).others() == [venv.root]
    with pytest.raises(EnvironmentUnavailable, match="was installed for other requirements"):
        load_folder(changed, {})


def test_a_lab_finds_its_folder_from_any_place(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(STARTER, write().path / "starter")
    monkeypatch.chdir(tmp_path)
    hl.Lab.open("lab", env="./small").close()
    monkeypatch.chdir("/")
    with pytest.raises(ConfigError, match=r"small.*trust=True"):  # the folder was named then, not now
        hl.Lab.open(tmp_path / "lab")
    lab = hl.Lab.open(tmp_path / "lab", trust=True)
    assert lab.environment.name == "small"
    lab.close()
    assert lasting_name("kitchen") == "kitchen" and lasting_name("a.b:c") == "a.b:c"
