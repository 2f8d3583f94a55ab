"""A new environment works as it is; the list says what is there and how to get the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harnesslab.cli import app
from harnesslab.envtools import list_environments, new
from harnesslab.errors import ConfigError
from harnesslab.harness.load import load_folder
from harnesslab.rollout.process.folder import EnvFolder
from harnesslab.testing import check_env

run = CliRunner().invoke


def test_a_new_environment_passes_the_check_at_once(tmp_path: Path) -> None:
    folder = new("lock", tmp_path)
    report = check_env(str(folder), limit=6).raise_for_failures()
    assert report.environment == "lock" and report.oracle_solved == 6
    assert load_folder(folder / "starter").name == "lock"
    assert EnvFolder(folder).manifest.title.startswith("lock: ")
    assert {path.name for path in folder.iterdir() if path.name != "__pycache__"} == {
        "env.py",
        "env.toml",
        "requirements.txt",
        "README.md",
        "starter",
        "test_env.py",
    }
    assert not any("__name__" in path.read_text("utf-8") for path in folder.rglob("*.*") if path.suffix != ".pyc")


@pytest.mark.parametrize("name", ["Lock", "1lock", "a-b", "", "class", "../x"])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name an environment"):
        new(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(ConfigError, match="is there already"):
        new("lock", tmp_path)


def test_the_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESSLAB_ENVS", str(tmp_path / "none"))
    monkeypatch.setenv("HARNESSLAB_DATA", str(tmp_path / "none"))
    monkeypatch.setattr("harnesslab.rollout.process.load.find_spec", lambda name: None)
    rows = {row.name: row for row in list_environments()}
    assert rows["tables"].runs == "this process" and rows["tables"].tasks == "24 / 24 / 24"
    assert rows["dbbench"].runs == "" and "harnesslab data get dbbench" in rows["dbbench"].note
    assert rows["babyai"].runs == "" and "harnesslab envs install babyai" in rows["babyai"].note
    assert list(rows) == sorted(rows)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run(app, ["envs", "new", "lock"])
    assert made.exit_code == 0 and (tmp_path / "lock" / "env.py").is_file()
    checked = run(app, ["envs", "check", "./lock", "--limit", "1"])
    assert checked.exit_code == 0 and "1 of 1" in checked.output
    env = tmp_path / "lock" / "env.py"
    env.write_text(env.read_text("utf-8").replace('"solved": self._solved()', '"solved": 1'), "utf-8")
    broken = run(app, ["envs", "check", "./lock", "--limit", "1"])
    assert broken.exit_code == 1 and "must be a bool" in broken.output
    listed = run(app, ["envs", "list"], env={"COLUMNS": "300"})
    assert listed.exit_code == 0 and "babyai" in listed.output and "24 / 24 / 24" in listed.output


def test_one_broken_folder_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> EnvFolder:
        raise ConfigError(f"{name}/env.toml, key 'titel': Extra inputs are not permitted")

    monkeypatch.setattr("harnesslab.envtools.listing.find_folder", broken)
    rows = {row.name: row for row in list_environments()}
    assert "key 'titel'" in rows["babyai"].note and rows["tables"].runs == "this process"
