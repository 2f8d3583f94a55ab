"""Terminal tasks: both formats, what is told and what is not, grading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")

from harnesslab.errors import ConfigError, EnvironmentFault
from harnesslab.rollout.env import SPLITS
from harnesslab_envs.sandbox import missing
from harnesslab_envs.terminal.env import environment
from harnesslab_envs.terminal.spec import read_folder

confined = pytest.mark.skipif(bool(missing()), reason=missing())
FINISH = {"name": "finish", "arguments": {}}


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One task in each format; the second is graded by a script."""
    files = {
        "first/task.yaml": "instruction: |-\n  Write {{WORD}} to out.txt.\nmax_test_timeout_sec: 30\n",
        "first/Dockerfile": "FROM scratch\nWORKDIR /work/here\nENV KIND=old LEVEL=2\nCOPY . /work/here/\n"
        "RUN echo made \\\n    by $KIND > made.txt\n",
        "first/extra/{{WORD}}.txt": "given {{WORD}}\n",
        "first/solution.sh": "echo {{WORD}} > out.txt\n",
        "first/tests/test_outputs.py": "def test_it():\n    assert open('/work/here/out.txt').read() == '{{WORD}}\\n'\n\n\n"
        "def test_other():\n    assert open('/work/here/made.txt').read() == 'made by old\\n'\n",
        "first/variants.json": json.dumps({"search": {"WORD": "plum"}, "sealed-1": {"WORD": "pear"}}),
        "second/task.toml": "[verifier]\ntimeout_sec = 20.0\n",
        "second/instruction.md": "Make the folder done.\n",
        "second/environment/Dockerfile": "FROM scratch\n",
        "second/solution/solve.sh": "mkdir done\n",
        "second/tests/test.sh": "mkdir -p /logs/verifier\n[ -d done ] && echo 1 > /logs/verifier/reward.txt\n",
        "not-a-task/readme.txt": "x",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_each_split_of_our_own_tasks_holds_a_dozen() -> None:
    environ = environment()
    counts = [len(environ.tasks(split)) for split in SPLITS] if not missing() else [12, 12, 24]
    assert counts == [12, 12, 24]
    specs = [spec for _, spec in read_folder(Path(environ.starter()).parent / "tasks")]
    assert len({spec.instruction for spec in specs}) == len(specs) == 48
    for spec in specs:
        assert "{{" not in spec.instruction + spec.solution + spec.script, spec.id
        assert b"{{" not in b"".join(spec.tests.values()), spec.id


def test_both_formats_are_read(folder: Path) -> None:
    specs = {spec.id: (variant, spec) for variant, spec in read_folder(folder)}
    assert list(specs) == ["first-search", "first-sealed-1", "second"]
    first = specs["first-search"][1]
    assert (first.instruction, first.family, first.test_seconds) == ("Write plum to out.txt.", "first", 30)
    assert first.context["extra/plum.txt"] == b"given plum\n"
    assert not [name for name in first.context if "test" in name or "solution" in name]
    assert specs["second"][1].script.startswith("mkdir -p /logs/verifier")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("task.yaml", "instruction: [", "task.yaml cannot be read"),
        ("task.yaml", "- a", "must hold keys and values"),
        ("task.yaml", "difficulty: easy", "no instruction"),
        ("task.yaml", "instruction: x\nmax_test_timeout_sec: soon", "number of seconds"),
        ("Dockerfile", "COPY one", "Dockerfile, line 1"),
        ("variants.json", "[]", "variants.json"),
    ],
)
def test_a_wrong_file_is_named(folder: Path, name: str, text: str, message: str) -> None:
    (folder / "first" / name).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=message):
        environment(str(folder))


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no tasks"):
        environment(str(tmp_path))
    with pytest.raises(ConfigError, match="no folder of tasks"):
        environment(str(tmp_path / "none"))


@confined
def test_a_folder_of_ones_own_is_played(folder: Path) -> None:
    environ = environment(str(folder))
    for split in SPLITS:
        for task in environ.tasks(split):
            env, policy = environ.make(), environ.oracle(task)
            observation, info = env.reset(options=task.options)
            for _ in range(2):
                observation, reward, terminated, truncated, info = env.step(policy(observation, info))
            assert (reward, terminated, truncated) == (1.0, True, False)
            assert info["private"] == {"solved": True, "progress": 1.0, "commands": 1}


@confined
def test_an_episode_from_start_to_end(folder: Path) -> None:
    environ = environment(str(folder), max_steps=6)
    env = environ.make()
    observation, info = env.reset(options={"task": "first-search"})
    assert observation == "You are in /work/here on a Linux machine."
    assert info["public"]["instruction"] == "Write plum to out.txt."
    observation, *_ = env.step(
        bash("ls; cat made.txt; echo $LEVEL; find / -name '*test_outputs*' -o -name 'solution.sh' 2>/dev/null; true")
    )
    assert observation == "Dockerfile\nextra\nmade.txt\nmade by old\n2"
    observation, reward, terminated, _, info = env.step({"name": "bash", "arguments": {"script": "ls"}})
    assert info["public"]["invalid"] and "wrong arguments" in observation and not terminated
    observation, *_ = env.step(bash("cd /; export PYTHONPATH=/nowhere; false"))
    assert observation == "[exit status 1]"
    assert env.step(bash("true"))[0] == "[no output]"
    _, reward, terminated, truncated, info = env.step(FINISH)
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["private"] == {"solved": False, "progress": 0.5, "commands": 3}
    env.close()


@confined
def test_the_tests_run_at_the_last_step_too(folder: Path) -> None:
    env = environment(str(folder), max_steps=1).make()
    env.reset(options={"task": "second"})
    _, reward, terminated, truncated, info = env.step(bash("mkdir done"))
    assert (reward, terminated, truncated, info["private"]["solved"]) == (1.0, False, True, True)


@confined
def test_what_the_agent_leaves_behind_cannot_pass_the_tests(folder: Path) -> None:
    env = environment(str(folder)).make()
    env.reset(options={"task": "first-search"})
    env.step(bash("mkdir -p /tests; echo 'def pytest_runtest_call(item): pass' > /tests/conftest.py"))
    env.step(bash("echo 'import os; os._exit(0)' > /work/here/pytest.py; export PYTHONPATH=/work/here; cd /work/here"))
    *_, info = env.step(FINISH)
    assert not info["private"]["solved"]


@confined
def test_a_dockerfile_that_needs_the_network_is_named(folder: Path) -> None:
    (folder / "first" / "Dockerfile").write_text("FROM scratch\nRUN exit 7\n", "utf-8")
    env = environment(str(folder)).make()
    with pytest.raises(EnvironmentFault, match="line 2 of its Dockerfile"):
        env.reset(options={"task": "first-search"})


@confined
def test_a_command_that_ends_the_machine_ends_the_episode(folder: Path) -> None:
    env = environment(str(folder)).make()
    env.reset(options={"task": "second"})
    observation, reward, terminated, _, info = env.step(bash("kill -9 2; sleep 9"))
    assert (observation, reward, terminated) == ("The command ended the machine.", 0.0, True)
    assert not info["private"]["solved"]
