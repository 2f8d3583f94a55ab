"""Terminal tasks: both formats, what is told and what is not, grading."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")
pytest.importorskip("e2b_dockerfile_utils")
pytest.importorskip("ctrf")

from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable, TasksLeftOut
from harnesslab.rollout.env import SPLITS
from harnesslab.rollout.registry import load_environment
from harnesslab_envs.sandbox import Engine, EngineError, Limits, missing
from harnesslab_envs.sandbox.engine import VARIABLE
from harnesslab_envs.terminal import backends
from harnesslab_envs.terminal.backends import Bubblewrap, Docker, choose, image_name
from harnesslab_envs.terminal.env import environment
from harnesslab_envs.terminal.spec import read_files, read_folder
from tests.envs.engine_image import base_image, engine_or_skip

confined = pytest.mark.skipif(bool(missing()), reason=missing())
FINISH = {"name": "finish", "arguments": {}}


def bash(command: str) -> dict[str, Any]:
    return {"name": "bash", "arguments": {"command": command}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One task in each format; the second is graded by a script."""
    files = {
        "first/task.yaml": "instruction: |-\n  Write {{WORD}} to out.txt.\nmax_test_timeout_sec: 120\n",
        "first/Dockerfile": "FROM scratch\nWORKDIR /srv/here\nENV KIND=old LEVEL=2\nCOPY . /srv/here/\n"
        "RUN echo made \\\n    by $KIND > made.txt\n",
        "first/extra/{{WORD}}.txt": "given {{WORD}}\n",
        "first/solution.sh": "echo {{WORD}} > out.txt\n",
        "first/tests/test_outputs.py": "def test_it():\n    assert open('/srv/here/out.txt').read() == '{{WORD}}\\n'\n\n\n"
        "def test_other():\n    assert open('/srv/here/made.txt').read() == 'made by old\\n'\n",
        "first/variants.json": json.dumps({"search": {"WORD": "plum"}, "sealed-1": {"WORD": "pear"}}),
        "second/task.toml": "[verifier]\ntimeout_sec = 120.0\n",
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


@pytest.fixture
def images(folder: Path) -> Iterator[Path]:
    """The same tasks for an engine; what it built for them is removed."""
    engine = engine_or_skip()
    image = base_image(engine)
    for file in folder.rglob("Dockerfile"):
        file.write_text(file.read_text("utf-8").replace("FROM scratch", f"FROM {image}"), "utf-8")
    yield folder
    remove_images(engine, folder)


def remove_images(engine: Engine, folder: Path) -> None:
    for _, spec in read_folder(folder).tasks:
        with contextlib.suppress(EngineError):  # a test need not have built it
            engine.call("image", "rm", "--force", image_name(spec))


def test_each_split_of_our_own_tasks_holds_a_dozen() -> None:
    environ = environment()
    counts = [len(environ.tasks(split)) for split in SPLITS] if not missing() else [12, 12, 24]
    assert counts == [12, 12, 24]
    specs = [spec for _, spec in read_folder(Path(environ.starter()).parent / "tasks").tasks]
    assert len({spec.instruction for spec in specs}) == len(specs) == 48
    for spec in specs:
        part = spec.parts[0]
        assert "{{" not in spec.instruction and part.solve, spec.id
        texts = [*part.tests.content.values(), *part.solution.content.values(), spec.dockerfile.encode()]
        assert b"{{" not in b"".join(texts), spec.id


def test_both_formats_are_read(folder: Path) -> None:
    specs = {spec.id: (variant, spec) for variant, spec in read_folder(folder).tasks}
    assert list(specs) == ["first-search", "first-sealed-1", "second"]
    first = specs["first-search"][1]
    assert (first.instruction, first.family, first.parts[0].test_seconds) == ("Write plum to out.txt.", "first", 120)
    assert first.context.content["extra/plum.txt"] == b"given plum\n"
    assert not [name for name in first.context.content if "test" in name or "solution" in name]
    assert (specs["second"][1].parts[0].script, specs["second"][1].format) == ("test.sh", "harbor")


BAD: dict[str, tuple[str, str | bytes, str]] = {
    "cut short": ("task.yaml", "instruction: [", r"task.yaml, line 1: not valid YAML"),
    "a list": ("task.yaml", "- a", "must hold keys and values, not a list"),
    "no instruction": ("task.yaml", "difficulty: easy", "key 'instruction': the task has no instruction"),
    "timeout": ("task.yaml", "instruction: x\nmax_test_timeout_sec: soon", "key 'max_test_timeout_sec': .* seconds"),
    "twice": ("task.yaml", "instruction: x\ninstruction: y\n", "line 2, key 'instruction': the key is given twice"),
    "latin-1": ("task.yaml", "instruction: caf\xe9".encode("latin-1"), r"line 1: not valid UTF-8 \(0xe9\)"),
    "parser": ("task.yaml", "instruction: x\nparser_name: swebench", "key 'parser_name'"),
    "services": ("docker-compose.yaml", "services:\n  client: {}\n  db: {image: x}\n", r"other containers \(db\)"),
    "privileged": ("docker-compose.yaml", "services: {client: {privileged: true}}", "key 'privileged'"),
    "variants": ("variants.json", "[]", "variants.json: must be an object of objects"),
    "variants cut": ("variants.json", '{"a": {"K": "v"', "variants.json, line 1: ends in the middle"),
    "dockerfile": ("Dockerfile", "FROM scratch\nCOPY one\n", "Dockerfile, line 2"),
    "heredoc": ("Dockerfile", "FROM scratch\nRUN cat <<EOF\nx\n", "line 2: cannot be read: unterminated heredoc"),
    "instruction": ("Dockerfile", "FROM scratch\nFETCH x\n", "line 2: cannot be read: unknown instruction: FETCH"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_task_that_cannot_be_used_is_listed_and_stops_no_other(folder: Path, case: str) -> None:
    name, content, message = BAD[case]
    (folder / "first" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.warns(TasksLeftOut, match=message):
        environ = environment(str(folder), engine="bubblewrap")
    assert all(name.startswith("first") for name in environ.unplayable)
    assert {task.id for split in SPLITS for task in environ.tasks(split)} == {"second"}
    (folder / "second" / "task.toml").unlink()
    with pytest.raises(ConfigError, match=f"(?s)None of the tasks in .* can be played here.*{message}"):
        environment(str(folder), engine="bubblewrap")


HARBOR: dict[str, tuple[str, str]] = {
    "no TOML": ("[verifier\n", "task.toml, line 1"),
    "twice": ("a = 1\na = 2\n", "line 2"),
    "timeout": ("[verifier]\ntimeout_sec = true\n", "key 'verifier.timeout_sec'"),
    "negative": ("[agent]\ntimeout_sec = -1\n", "key 'agent.timeout_sec'"),
    "a word for a table": ("verifier = 'x'\n", "key 'verifier': must be a table, not a text"),
    "separate": ("[verifier]\nenvironment_mode = 'separate'\n", "machine of their own"),
    "GPU": ("[environment]\ngpus = 1\n", "needs a GPU"),
    "windows": ("[environment]\nos = 'windows'\n", "only Linux"),
    "MCP": ("[[environment.mcp_servers]]\nname = 'x'\n", "MCP"),
    "hosts": ("[environment]\nallowed_hosts = ['a.org']\n", "allowed hosts"),
    "memory": ("[environment]\nmemory = 'much'\n", "key 'environment.memory'"),
    "too much memory": ("[environment]\nmemory_mb = 900000000\n", "asks for 900000000 MiB"),
    "variable": ("[verifier.env]\nKEY = '${SECRET_KEY}'\n", "needs the variable SECRET_KEY"),
    "step": ("[[steps]]\nname = 'a'\n", "there is no folder steps/a"),
    "step outside": ("[[steps]]\nname = '../../first'\n", "there is no folder"),
    "strategy": ("multi_step_reward_strategy = 'best'\n", "'mean' or 'final'"),
    "healthcheck": ("[environment.healthcheck]\nretries = 1\n", "a table with a command"),
}


@pytest.mark.parametrize("case", HARBOR)
def test_what_a_harbor_task_asks_for_and_cannot_have_is_named(
    folder: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "of the host")
    text, message = HARBOR[case]
    (folder / "second" / "task.toml").write_text(text, "utf-8")
    with pytest.warns(TasksLeftOut, match=message):
        environ = environment(str(folder), engine="bubblewrap")
    assert list(environ.unplayable) == ["second"]


def test_bytes_that_an_editor_adds_make_no_difference(folder: Path) -> None:
    names = ("first/task.yaml", "first/variants.json", "second/task.toml", "second/instruction.md", "first/Dockerfile")
    for name in names:
        text = (folder / name).read_text("utf-8")
        (folder / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    read = read_folder(folder)
    assert not read.unplayable and [spec.id for _, spec in read.tasks] == ["first-search", "first-sealed-1", "second"]
    assert read.tasks[0][1].instruction == "Write plum to out.txt."
    assert environment(str(folder), engine="bubblewrap").unplayable == {}


def test_links_and_odd_files_stop_no_task(folder: Path) -> None:
    tests = folder / "one" / "tests"
    tests.mkdir(parents=True, exist_ok=True)
    (tests / "loop").symlink_to("loop")
    (tests / "there").symlink_to("back")
    (tests / "back").symlink_to("there")
    (tests / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(tests / "pipe")
    files = read_files(tests, {})
    assert set(files.links) == {"loop", "there", "back"} and "pipe" not in files and "passwd" not in files


def test_a_folder_may_be_one_task(folder: Path) -> None:
    assert [spec.id for _, spec in read_folder(folder / "second").tasks] == ["second"]


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
    assert observation == "You are in /srv/here on a Linux machine."
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
    env.step(bash("echo 'import os; os._exit(0)' > /srv/here/pytest.py; export PYTHONPATH=/srv/here; cd /srv/here"))
    *_, info = env.step(FINISH)
    assert not info["private"]["solved"]


@confined
def test_a_dockerfile_that_needs_the_network_is_named(folder: Path) -> None:
    (folder / "first" / "Dockerfile").write_text("FROM scratch\nRUN exit 7\n", "utf-8")
    env = environment(str(folder)).make()
    with pytest.raises(EnvironmentFault, match="Dockerfile, line 2, 'RUN exit 7': exit status 7"):
        env.reset(options={"task": "first-search"})


@confined
def test_a_command_that_ends_the_machine_ends_the_episode(folder: Path) -> None:
    env = environment(str(folder)).make()
    env.reset(options={"task": "second"})
    observation, reward, terminated, _, info = env.step(bash("kill -9 2; sleep 9"))
    assert (observation, reward, terminated) == ("The command ended the machine.", 0.0, True)
    assert not info["private"]["solved"]


def test_files_of_an_image_that_can_be_run_can_be_run(folder: Path) -> None:
    (folder / "first" / "extra" / "go").write_text("#!/bin/sh\n", "utf-8")
    (folder / "first" / "extra" / "go").chmod(0o755)
    specs = [spec for _, spec in read_folder(folder).tasks]
    assert [spec.context.executable for spec in specs] == [{"extra/go"}, {"extra/go"}, frozenset()]
    assert "Dockerfile" in specs[2].context
    assert len({image_name(spec) for spec in specs}) == 3


def test_a_dockerfile_that_only_an_engine_can_follow_is_left_to_it(folder: Path) -> None:
    (folder / "first" / "Dockerfile").write_text("FROM scratch\nCOPY --from=other/image a b\n", "utf-8")
    with pytest.warns(TasksLeftOut, match="Dockerfile, line 2"):
        left = environment(str(folder), engine="bubblewrap")
    assert set(left.unplayable) == {"first-search", "first-sealed-1"}
    assert environment(str(folder), engine="docker").version.endswith(".docker")


def test_auto_takes_the_first_engine_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits()
    for confined, works, answers, chosen in (
        ("", True, True, Bubblewrap),
        ("", False, True, Docker),
        ("none here", False, True, Docker),
        ("none here", False, False, Bubblewrap),
    ):
        monkeypatch.setattr(backends, "missing", lambda reason=confined: reason)
        monkeypatch.setattr(backends, "usable", lambda works=works: works)
        monkeypatch.setattr(backends.shutil, "which", lambda name: f"/bin/{name}")
        monkeypatch.setattr(Docker, "missing", lambda self, answers=answers: "" if answers else "no engine")
        assert type(choose("auto", limits)) is chosen
    assert 'engine="docker"' in choose("auto", limits).missing()
    for wrong in (("podman", "none"), ("docker", "host")):
        with pytest.raises(ConfigError, match=r"docker|all"):
            choose(wrong[0], limits, wrong[1])


def test_without_an_engine_one_sentence_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(folder / "no-docker"))
    with pytest.raises(EnvironmentUnavailable, match="No container engine answers"):
        environment(str(folder), engine="docker").tasks("search")


def test_an_episode_on_docker(images: Path) -> None:
    environ = environment(str(images), max_steps=8, engine="docker", network="none")
    env = environ.make()
    try:
        observation, info = env.reset(options={"task": "first-search"})
        assert observation == "You are in /srv/here on a Linux machine."
        look = "ls; cat made.txt; echo $LEVEL; find / -name '*test_outputs*' -o -name 'solution.sh' 2>/dev/null; true"
        assert env.step(bash(look))[0] == "Dockerfile\nextra\nmade.txt\nmade by old\n2"
        env.step(
            bash("mkdir -p /tests /opt/harnesslab; echo 'def pytest_runtest_call(item): pass' > /tests/conftest.py")
        )
        env.step(bash("echo 'import os; os._exit(0)' > pytest.py; export PYTHONPATH=/srv/here"))
        assert env.step(bash("cd extra"))[0] == "[no output]"
        assert env.step(bash("pwd"))[0] == "/srv/here/extra"
        _, reward, terminated, truncated, info = env.step(FINISH)
        assert (reward, terminated, truncated) == (0.0, True, False)
        assert info["private"] == {"solved": False, "progress": 0.5, "commands": 5}
        # The second episode finds the image, and a container that nobody has touched.
        task = next(task for task in environ.tasks("search") if task.id == "first-search")
        env.reset(options=task.options)
        policy = environ.oracle(task)
        env.step(policy("", {}))
        assert env.step(policy("", {}))[1] == 1.0
    finally:
        env.close()


def test_the_published_script_runs_on_docker(images: Path) -> None:
    (images / "second" / "environment" / "Dockerfile").write_text(
        (images / "second" / "environment" / "Dockerfile").read_text("utf-8") + "WORKDIR /app\nUSER plain\n", "utf-8"
    )
    env = environment(str(images), max_steps=2, engine="docker", network="none").make()
    try:
        env.reset(options={"task": "second"})
        assert "uid=1000" in env.step(bash("id"))[0]
        _, reward, terminated, truncated, _ = env.step(bash("mkdir /tmp/done"))
        assert (reward, terminated, truncated) == (0.0, False, True)
        (images / "second" / "tests" / "test.sh").write_text("[ -d /tmp/done ]\n", "utf-8")
        env = environment(str(images), max_steps=1, engine="docker", network="none").make()
        env.reset(options={"task": "second"})
        assert env.step(bash("mkdir /tmp/done"))[1] == 1.0
    finally:
        env.close()


def test_an_image_that_cannot_be_built_is_told(images: Path) -> None:
    with (images / "first" / "Dockerfile").open("a", encoding="utf-8") as file:
        file.write("RUN echo no-luck-here && exit 7\n")
    env = environment(str(images), engine="docker", network="none").make()
    with pytest.raises(EnvironmentFault, match=r"(?s)image of the task first-search cannot be built.*7"):
        env.reset(options={"task": "first-search"})


def test_the_environment_is_found_by_its_name() -> None:
    found = load_environment("terminal")
    assert found.name == "terminal" and found.version.startswith("2+")
