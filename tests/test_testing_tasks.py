"""check_tasks and `harnesslab envs check`: one row a task, and what the null agent solves is left out afterwards."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harnesslab.cli import app
from harnesslab.envtools import new
from harnesslab.errors import EnvironmentFault, TasksLeftOut
from harnesslab.rollout.env import SPLITS, Action, Policy, Split, Task
from harnesslab.rollout.registry import load_environment
from harnesslab.testing import check_env, check_tasks

IDS = ("sound", "free", "partial", "broken", "unsolved", "mute")


class Doors:
    """A task a sort: sound, solved by doing nothing, partly rewarded, broken at reset, without a solution, without an oracle."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Any:
        self.sort = (options or {})["sort"]
        if self.sort == "broken":
            raise EnvironmentFault("line 3 of its file is wrong")
        return "A door.", self._info(False)

    def step(self, action: Any) -> Any:
        solved = self.sort == "free" or (action == "open" and self.sort in ("sound", "partial"))
        reward = 0.25 if self.sort == "partial" and not solved else float(solved)
        return "Done.", reward, True, False, self._info(solved)

    def close(self) -> None:
        pass

    def _info(self, solved: bool) -> dict[str, Any]:
        return {"public": {"instruction": "Open it."}, "private": {"solved": solved}}


class World:
    name, version, max_steps = "doors", "7", 3
    unplayable: Mapping[str, str] = {"odd": "odd/task.toml, line 2: not valid TOML"}

    def tasks(self, split: Split) -> list[Task]:
        return [Task(f"{split}-{sort}", split, "doors", options={"sort": sort}) for sort in IDS]

    def make(self) -> Doors:
        return Doors()

    def oracle(self, task: Task) -> Policy:
        if task.id.endswith("mute"):
            raise EnvironmentFault(f"The task {task.id} has no solution.")
        return lambda _observation, _info: "open"

    def starter(self) -> Path:
        return Path()


class Silent(World):
    """Has no oracle at all."""

    oracle = None  # type: ignore[assignment]
    unplayable: Mapping[str, str] = {}


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HARNESSLAB_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_each_task_has_a_row_that_says_what_is_wrong() -> None:
    table = check_tasks(World(), splits=("search",))
    found = {row.task.removeprefix("search-"): (row.playable, row.oracle, row.null, row.reason) for row in table.rows}
    assert found["sound"] == (True, "solved", "not solved", "")
    assert found["free"][:3] == (True, "solved", "solved") and "left out" in found["free"][3]
    assert found["partial"][:3] == (True, "solved", "not solved")
    assert found["broken"][0] is False and "line 3 of its file is wrong" in found["broken"][3]
    assert found["unsolved"][1] == "not solved" and "its oracle does not solve it" in found["unsolved"][3]
    assert found["mute"] == (True, "none", "not solved", "it has no oracle")
    assert found["odd"] == (False, "-", "-", "odd/task.toml, line 2: not valid TOML")
    assert table.counts() == {
        "checked": 7, "unchecked": 0, "playable": 5, "oracle_solved": 3, "without_oracle": 1, "null_solved": 1,
    }  # fmt: skip
    assert not table.ok and "not solved (0.25)" in str(table) and "5/7 tasks playable" in str(table)
    assert json.loads(json.dumps(table.to_json()))["tasks"][1]["task"] == "search-sound"
    assert "<td" in table._repr_html_()


class Raising(World):
    """Its oracle is broken."""

    unplayable: Mapping[str, str] = {}

    def oracle(self, task: Task) -> Policy:
        raise KeyError(task.id)


class Stumbling(World):
    """Its oracle breaks when it acts."""

    unplayable: Mapping[str, str] = {}

    def oracle(self, task: Task) -> Policy:
        def policy(_observation: str, _info: dict) -> Action:
            raise EnvironmentFault("the plan is empty")

        return policy


class Bare(World):
    """Has no tasks."""

    unplayable: Mapping[str, str] = {}

    def tasks(self, split: Split) -> list[Task]:
        return []


def test_an_oracle_that_breaks_is_not_one_that_is_missing(tmp_path: Path) -> None:
    raised = check_tasks(Raising(), splits=("search",))
    assert not raised.ok and raised.rows[0].reason == "the oracle raised KeyError: 'search-sound'"
    stumbled = check_tasks(Stumbling(), splits=("search",))
    assert not stumbled.ok and stumbled.rows[0].reason == "the oracle failed: the plan is empty"
    folder = new("mine", tmp_path)
    source = (folder / "env.py").read_text("utf-8")
    for broken, reason in (
        ("def oracle(self, task):\n        raise KeyError(task.id)\n\n    def unused", "raised KeyError: 'search-0'"),
        ("def unused", "it has no oracle"),
    ):
        (folder / "env.py").write_text(source.replace("def oracle", broken, 1), "utf-8")
        table = check_tasks(str(folder), splits=("search",), limit=1)
        assert reason in table.rows[0].reason and table.rows[0].playable
        assert table.ok == (reason == "it has no oracle")
    report = check_env(Raising())
    assert "KeyError: 'search-sound'" in str(report)


def test_no_tasks_are_not_fine() -> None:
    table = check_tasks(Bare())
    assert not table.ok and str(table).endswith("doors 7: no tasks")


def test_what_the_null_agent_solves_is_left_out_from_then_on(data: Path) -> None:
    path = f"{__name__}:World"
    before = load_environment(path)
    assert type(before) is World
    check_tasks(path, splits=("search",))
    after = load_environment(path)
    assert [task.id for task in after.tasks("search")] == [f"search-{sort}" for sort in IDS if sort != "free"]
    assert len(after.tasks("gate")) == len(IDS)
    assert after.version.startswith("7-1.") and after.name == "doors" and after.max_steps == 3
    asked = load_environment(path, null_solved=True)
    assert asked.version == "7" and len(asked.tasks("search")) == len(IDS)
    version = after.version
    check_tasks(path)
    assert after.version == version and len(after.tasks("gate")) == len(IDS)
    more = load_environment(path)
    assert more.version.startswith("7-3.") and more.version != after.version
    again = pickle.loads(pickle.dumps(more))
    assert again.version == more.version and again.tasks("gate") == more.tasks("gate")


def test_a_repaired_task_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{__name__}:World"
    check_tasks(path)
    monkeypatch.setattr(Doors, "step", lambda self, action: ("Done.", 0.0, True, False, self._info(False)))
    check_tasks(path)
    assert type(load_environment(path)) is World


def test_a_limit_counts_what_it_leaves_and_no_oracle_is_no_fault() -> None:
    table = check_tasks(Silent(), limit=1)
    assert [row.task for row in table.rows] == [f"{split}-sound" for split in SPLITS]
    assert {row.oracle for row in table.rows} == {"none"} and table.unchecked == 15 and table.ok
    assert "15 more were not checked" in str(table) and "3 without an oracle" in str(table)


def test_the_command_prints_a_row_a_task_and_json(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["envs", "check", f"{__name__}:World", "--tasks-only"])
    assert shown.exit_code == 1 and "search-free" in shown.output and "the null agent solves it" in shown.output
    as_json = CliRunner().invoke(app, ["envs", "check", "kitchen", "--limit", "1", "--tasks-only", "--json"])
    found = json.loads(as_json.output)
    assert as_json.exit_code == 0 and found["environment"] == "kitchen" and found["oracle_solved"] == 3
    whole = CliRunner().invoke(app, ["envs", "check", f"{__name__}:Silent", "--limit", "1", "--json"])
    assert "contract" in json.loads(whole.output)


def test_a_folder_of_tasks_is_checked_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("e2b_dockerfile_utils")
    pytest.importorskip("ctrf")
    from harnesslab_envs.sandbox import missing

    if missing():
        pytest.skip(missing())
    tasks = tmp_path / "tasks"
    score = "[ -f done ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
    for name, test, toml in (
        ("good", score, ""),
        ("free", "echo 1 > /logs/verifier/reward.txt\n", ""),
        ("bad", score, "a="),
    ):
        for file, text in {
            "task.toml": toml,
            "instruction.md": "Do it.",
            "environment/Dockerfile": "FROM x\nWORKDIR /app\n",
            "tests/test.sh": test,
            "solution/solve.sh": "touch done\n",
        }.items():
            (tasks / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tasks / name / file).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    for given in ("tasks", "./tasks", str(tasks)):
        shown = CliRunner().invoke(app, ["envs", "check", given, "--json"])
        rows = {row["task"]: row for row in json.loads(shown.output)["tasks"]}
        assert shown.exit_code == 1 and set(rows) == {"good", "free", "bad"}
        assert (rows["good"]["oracle"], rows["good"]["null"], rows["good"]["reason"]) == ("solved", "not solved", "")
        assert rows["free"]["null"] == "solved" and not rows["bad"]["playable"] and "task.toml" in rows["bad"]["reason"]
    with pytest.warns(TasksLeftOut, match="bad: "):
        left = load_environment("terminal", tasks=str(tasks))
        assert {task.id for split in SPLITS for task in left.tasks(split)} == {"good"}
    (tasks / "good" / "task.toml").write_text("b=", "utf-8")
    (tasks / "free" / "task.toml").write_text("b=", "utf-8")
    shown = CliRunner().invoke(app, ["envs", "check", "tasks"])
    assert shown.exit_code == 1 and "0/3 tasks playable" in shown.output
