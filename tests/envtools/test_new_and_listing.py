"""A new environment works as it is; the list says what is there and how to get the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harnesslab.cli import app
from harnesslab.envtools import EnvStatus, list_environments, new
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
    with pytest.raises(ConfigError, match="already exists"):
        new("lock", tmp_path)


def test_the_list(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESSLAB_ENVS", str(tmp_path / "none"))
    monkeypatch.setenv("HARNESSLAB_DATA", str(tmp_path / "none"))
    monkeypatch.setattr("harnesslab.rollout.process.load.find_spec", lambda name: None)
    rows = {row.name: row for row in list_environments()}
    assert rows["tables"].runs == "this process" and rows["tables"].tasks == "24 / 24 / 24"
    assert rows["dbbench"].runs == "" and rows["dbbench"].command == "harnesslab data get dbbench"
    assert rows["babyai"].runs == "" and rows["babyai"].command == "harnesslab envs install babyai"
    assert "harnesslab envs install babyai" in rows["babyai"].note
    assert rows["kitchen"].title == "A small household text world of our own"
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


@pytest.mark.parametrize("columns", [80, 60, 200])
def test_the_list_is_readable_in_a_terminal(columns: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with a long name, so that a path in a sentence would not fit into any line of it"
    monkeypatch.setenv("HARNESSLAB_ENVS", str(folder))
    monkeypatch.setenv("HARNESSLAB_DATA", str(folder))
    monkeypatch.setattr("harnesslab.rollout.process.load.find_spec", lambda name: None)
    listed = run(app, ["envs", "list"], env={"COLUMNS": str(columns)})
    assert listed.exit_code == 0 and "…" not in listed.output
    table, _, below = listed.output.partition("How to get what is missing:")
    lines = [line.rstrip() for line in table.partition("  tasks:")[0].splitlines()]
    assert max(map(len, lines)) <= columns
    assert any(line.split() == ["name", "state", "tasks", "what"] for line in lines)
    assert any("tables" in line and "here" in line and "24 / 24 / 24" in line for line in lines)
    words = " ".join(line[-columns:].strip() for line in lines)
    assert "FrozenLake" in words and "agentbench-os" in words
    typed = dict(line.split(maxsplit=1) for line in below.splitlines() if line.strip())
    assert typed["dbbench"] == "harnesslab data get dbbench"
    assert typed["babyai"] == "harnesslab envs install babyai"
    assert "kitchen" not in typed


def test_what_cannot_be_got_by_a_command_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    row = EnvStatus("far", "far away", note="The map [of it] is missing: " + "draw one, " * 20)
    monkeypatch.setattr("harnesslab.envtools.list_environments", lambda counts: [row])
    listed = run(app, ["envs", "list"], env={"COLUMNS": "80"})
    assert f"  far   {row.note}" in listed.output


def test_data_and_models_are_listed_without_cuts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / ("long " * 20).strip()
    monkeypatch.setenv("HARNESSLAB_DATA", str(folder))
    monkeypatch.setenv("HARNESSLAB_MODELS", str(folder))
    listed = run(app, ["data", "list"], env={"COLUMNS": "80"}).output
    assert str(folder) in listed and "harnesslab data get alfworld" in listed and "36.5" in listed
    (folder / "dbbench").mkdir(parents=True)
    (folder / "dbbench" / "dev.jsonl").write_text("mine", "utf-8")
    listed = run(app, ["data", "list"], env={"COLUMNS": "80"}).output
    assert "changed: some files are missing" in listed and "harnesslab data get dbbench" not in listed
    listed = run(app, ["models", "list"], env={"COLUMNS": "80"}).output
    assert str(folder) in listed and "…" not in listed


def test_one_broken_folder_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> EnvFolder:
        raise ConfigError(f"{name}/env.toml, key 'titel': Extra inputs are not permitted")

    monkeypatch.setattr("harnesslab.envtools.listing.find_folder", broken)
    rows = {row.name: row for row in list_environments()}
    assert "key 'titel'" in rows["babyai"].note and rows["tables"].runs == "this process"
