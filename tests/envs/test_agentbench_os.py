"""AgentBench OS: reading the published files, judging, and an episode on a confined machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import EnvironmentUnavailable
from harnesslab.rollout.env import SPLITS
from harnesslab.rollout.splits import check_splits
from harnesslab_envs.agentbench_os.env import environment
from harnesslab_envs.agentbench_os.left_out import LEFT_OUT
from harnesslab_envs.agentbench_os.records import read_records
from harnesslab_envs.sandbox import missing

confined = pytest.mark.skipif(bool(missing()), reason=missing())
INTEGER = {"language": "python", "file": "check/integer-match.py"}


def call(name: str, **arguments: str) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tasks in the shapes that the published files have, with scripts as files."""
    count = {
        "description": "How many files are in /data?",
        "create": {"local": "default", "init": {"code": "mkdir /data; touch /data/a '/data/b c'"}},
        "evaluation": {"check": [None, INTEGER], "example": "ls -1 /data | wc -l"},
    }
    match = {
        "description": "What is the word in /word?",
        "create": {"init": ["echo plum > /word", {"file": "init/more.sh"}]},
        "start": "sleep 300 &",
        "evaluation": {"match": "plum", "example": {"code": "cat /word"}},
    }
    moved = {
        "description": "Move /old to /new, and say what was in it.",
        "create": {"init": "echo pear > /old"},
        "evaluation": {
            "check": [
                {"language": "python", "code": "from sys import argv\nassert argv[1].strip() == 'pear'"},
                {"code": "[ -f /new ]"},
            ],
            "example": "mv /old /new; cat /new",
        },
    }
    change = {
        "description": "Make /done.",
        "create": [None, INTEGER],
        "evaluation": {"check": {"code": "[ -d /done ] && [ \"$1\" = '' ]"}, "example": {"file": "example/do.sh"}},
    }
    files = {
        "data/dev.json": [count],
        "data/1/new.json": [match, change, moved],
        "data/2/one.json": count,
        "train_0317/training.json": [{**count, "description": f"Count them, {n}"} for n in range(130)],
    }
    script = "import sys\nsys.exit(int(sys.argv[1]) != int(sys.argv[2]))"
    texts = {f"scripts/{place}/check/integer-match.py": script for place in ("dev", "1", "2", "7")}
    texts |= {"scripts/1/init/more.sh": "echo more > /more", "scripts/1/example/do.sh": "mkdir /done"}
    texts |= {name: json.dumps(value) for name, value in files.items()}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_all_published_shapes_are_read(folder: Path) -> None:
    records = {record.id: record for record in read_records(folder)[0]}
    match = records["test-1-new-0"]
    assert [script.code for script in match.init] == ["echo plum > /word", "echo more > /more"]
    assert (match.match, match.start, match.checks) == ("plum", "sleep 300 &", ())
    change = records["test-1-new-1"]
    assert change.init == () and change.example is not None and change.example.code == "mkdir /done"
    assert records["test-2-one-0"].checks[0] is None
    assert {record.source for record in records.values()} == {"dev", "test", "train"}


def test_the_version_changes_with_the_data(folder: Path) -> None:
    before = environment(str(folder)).version
    (folder / "scripts/1/example/do.sh").write_text("mkdir -p /done", "utf-8")
    assert environment(str(folder)).version != before


def test_scripts_that_no_task_names_are_no_part_of_the_version(folder: Path) -> None:
    before = environment(str(folder)).version
    (folder / "scripts/1/check/other.sh").write_text("exit 1", "utf-8")
    assert environment(str(folder)).version == before
    scripts = sorted((folder / "scripts").rglob("*.*"))
    texts = {file.relative_to(folder / "scripts").as_posix(): file.read_text("utf-8") for file in scripts}
    (folder / "scripts.json").write_text(json.dumps(texts), "utf-8")
    assert environment(str(folder)).version == before


@confined
def test_published_splits_do_not_mix(folder: Path) -> None:
    environ = environment(str(folder))
    families = {split: {task.family for task in environ.tasks(split)} for split in SPLITS}
    assert families == {"search": {"train"}, "gate": {"dev", "train"}, "sealed": {"test-1", "test-2"}}
    ids = [task.id for split in SPLITS for task in environ.tasks(split)]
    assert len(ids) == len(set(ids)) == 135


@confined
def test_what_cannot_be_solved_is_offered_only_on_demand(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnesslab_envs.agentbench_os.env.LEFT_OUT", {"test-1-new-0": "why"})
    offered, everything = environment(str(folder)), environment(str(folder), all_tasks=True)
    assert "test-1-new-0" not in {task.id for task in offered.tasks("sealed")}
    assert "test-1-new-0" in {task.id for task in everything.tasks("sealed")}
    assert [task.id for task in offered.tasks("gate")] == [task.id for task in everything.tasks("gate")]


@confined
def test_training_tasks_that_nearly_repeat_others_stay_in_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lent = [task.id for task in environment(str(folder)).tasks("gate") if task.family == "train"]
    monkeypatch.setattr("harnesslab_envs.agentbench_os.env.STAY", {lent[0]})
    splits = {split: [task.id for task in environment(str(folder)).tasks(split)] for split in SPLITS}
    assert lent[0] in splits["search"] and len(splits["gate"]) == 125
    assert len({one for ids in splits.values() for one in ids}) == 135


def test_missing_and_broken_data_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_DATA", str(folder / "none"))
    with pytest.raises(EnvironmentUnavailable, match="harnesslab data get agentbench-os"):
        _ = environment().version


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", r"key 'evaluation': task 0 \(from 0\) lacks this key"),
        ('[{"evaluation": {}}]', "key 'description': task 0 .*lacks this key"),
        ("null", "must hold keys and values, not null"),
        ('["x"]', "must hold keys and values, not a text"),
        ('[{"description": "x", "evaluation": 5}]', "task 0 .*: the key 'evaluation' is a number, not an object"),
        ('[{"description": "x", "evaluation": {"check": [5]}}]', "task 0 .*: a script is a number, not an object"),
        ('[{"description": "x", "evaluation": {"check": {"file": "no.sh"}}}]', "task 0 .*: there is no script 2/no.sh"),
        ('[{"description": "x", "evaluation": {"check": {}}}]', "key 'file': task 0 .*lacks this key"),
    ],
)
def test_what_is_wrong_with_a_task_is_said_in_the_words_of_its_file(folder: Path, text: str, message: str) -> None:
    (folder / "data/2/one.json").write_text(text, "utf-8")
    with pytest.raises(EnvironmentUnavailable, match=rf"one\.json.*{message}.*harnesslab data get"):
        _ = environment(str(folder)).version


def test_scripts_of_another_shape_are_named(folder: Path) -> None:
    (folder / "scripts.json").write_text("[]", "utf-8")
    with pytest.raises(EnvironmentUnavailable, match=r"scripts\.json: must hold keys and values, not a list"):
        _ = environment(str(folder)).version


@confined
@pytest.mark.parametrize(
    ("record", "actions", "solved"),
    [
        ("dev-dev-dev-0", [call("answer_action", answer=" 2 ")], True),
        ("dev-dev-dev-0", [call("answer_action", answer="3")], False),
        ("dev-dev-dev-0", [call("answer_action", answer="two")], False),
        ("dev-dev-dev-0", [call("finish_action")], False),
        ("test-1-new-0", [call("answer_action", answer="plum\n")], True),
        ("test-1-new-0", [call("answer_action", answer="a plum")], False),
        ("test-1-new-1", [call("bash_action", script="mkdir /done"), call("finish_action", thought="x")], True),
        ("test-1-new-1", [call("finish_action", thought="x")], False),
    ],
)
def test_answers_are_judged_as_published(
    folder: Path, record: str, actions: list[dict[str, Any]], solved: bool
) -> None:
    env = environment(str(folder)).make()
    _, info = env.reset(options={"record": record})
    for action in actions:
        _, reward, terminated, _, info = env.step(action)
    assert (info["private"]["solved"], reward, terminated) == (solved, float(solved), True)


@confined
def test_an_episode_shows_what_agentbench_shows(folder: Path) -> None:
    env = environment(str(folder)).make()
    _, info = env.reset(options={"record": "test-1-new-0"})
    assert info["public"]["instruction"] == "What is the word in /word?"
    shown, *_ = env.step(call("bash_action", script="cd /tmp; cat /word /more; pgrep -c sleep"))
    assert shown == "plum\nmore\n1"
    assert env.step(call("bash_action", script="pwd"))[0] == "/tmp"
    long, *_ = env.step(call("bash_action", script="seq 1 5000"))
    assert len(long) <= 800 and long.endswith("[truncated because the output is too long]")
    text, _, terminated, _, info = env.step(call("answer", answer="plum"))
    assert info["public"]["invalid"] and not terminated and "There is no tool" in text
    env.close()


@confined
def test_the_oracle_answers_nothing_where_its_solution_prints_nothing(folder: Path) -> None:
    file = folder / "data/2/one.json"
    task = json.loads(file.read_text("utf-8"))
    task["evaluation"] = {"check": [None, {"code": '[ "$1" = "" ]'}], "example": "true"}
    file.write_text(json.dumps(task), "utf-8")
    environ = environment(str(folder))
    chosen = next(task for task in environ.tasks("sealed") if task.id == "test-2-one-0")
    env, policy = environ.make(), environ.oracle(chosen)
    observation, info = env.reset(options=chosen.options)
    observation, _, _, _, info = env.step(policy(observation, info))
    assert observation == "[no output]"
    assert env.step(policy(observation, info))[4]["private"]["solved"]


@confined
def test_a_set_up_draws_the_same_in_each_episode(folder: Path) -> None:
    file = folder / "data/2/one.json"
    task = json.loads(file.read_text("utf-8"))
    task["create"] = {"init": {"code": "#!/bin/bash\nfor n in 1 2 3; do echo $RANDOM; done > /drawn"}}
    file.write_text(json.dumps([task, task]), "utf-8")
    env = environment(str(folder)).make()
    drawn = []
    for record in ("test-2-one-0", "test-2-one-0", "test-2-one-1"):
        env.reset(options={"record": record})
        drawn.append(env.step(call("bash_action", script="cat /drawn"))[0])
    env.close()
    assert drawn[0] == drawn[1] != drawn[2]


@confined
def test_the_oracle_solves_each_kind(folder: Path) -> None:
    environ = environment(str(folder))
    for task in [*environ.tasks("sealed"), next(t for t in environ.tasks("gate") if t.family == "dev")]:
        env, policy = environ.make(), environ.oracle(task)
        observation, info = env.reset(options=task.options)
        for _ in range(2):
            observation, _, terminated, _, info = env.step(policy(observation, info))
            if terminated:
                break
        assert info["private"]["solved"], task.id


@confined
def test_the_official_tasks_split_as_published() -> None:
    data = Path(os.environ.get("HARNESSLAB_AGENTBENCH_OS") or "absent")
    if not data.is_dir():
        pytest.skip("AgentBench's files are not here: HARNESSLAB_AGENTBENCH_OS names none")
    everything = environment(str(data), all_tasks=True)
    assert [len(everything.tasks(split)) for split in SPLITS] == [876, 150, 144]
    ids = {task.id for split in SPLITS for task in everything.tasks(split)}
    offered = {task.id for split in SPLITS for task in environment(str(data)).tasks(split)}
    assert ids - offered == set(LEFT_OUT)
    found = check_splits(environment(str(data)))
    assert (found.twins, found.warning()) == ((), "")
    assert {twin.like_split for twin in check_splits(everything).twins} >= {"gate", "sealed"}


@confined
def test_the_same_question_about_another_machine_is_another_task(folder: Path) -> None:
    file = folder / "data/2/one.json"
    task = json.loads(file.read_text("utf-8"))
    other = {**task, "create": {"init": "mkdir /data; touch /data/c"}}
    file.write_text(json.dumps([task, other, task]), "utf-8")
    within = [twin for twin in check_splits(environment(str(folder))).twins if twin.like_split == "sealed"]
    assert [{twin.task.id, twin.like.id} for twin in within] == [{"test-2-one-0", "test-2-one-2"}]
