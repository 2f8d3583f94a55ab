"""How terminal tasks are judged: Harbor's reward files and pytest's summary, by themselves and in whole episodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("yaml")
pytest.importorskip("e2b_dockerfile_utils")
pytest.importorskip("ctrf")

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.null import null_policy
from harnesslab_envs.sandbox import missing
from harnesslab_envs.terminal.env import environment
from harnesslab_envs.terminal.rewards import NoReward, from_files, from_pytest

confined = pytest.mark.skipif(bool(missing()), reason=missing())
Task = Callable[..., Path]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Writes the files of one task, "task/..." by name, and returns the folder of tasks."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            (tmp_path / "one" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "one" / name).write_text(text, "utf-8")
        return tmp_path

    return write


def harbor(test: str, toml: str = "", **files: str) -> dict[str, str]:
    return {
        "task.toml": toml,
        "instruction.md": "Do it.",
        "environment/Dockerfile": "FROM scratch\nWORKDIR /app\n",
        "tests/test.sh": test,
        "solution/solve.sh": "touch done\n",
        **files,
    }


def play(folder: Path, *commands: str, oracle: bool = False, **options: Any) -> tuple[float, dict[str, Any]]:
    environ = environment(str(folder), engine="bubblewrap", **options)
    one = next(task for split in ("search", "gate", "sealed") for task in environ.tasks(split))
    env = environ.make()
    actions = iter([{"name": "bash", "arguments": {"command": command}} for command in commands])
    policy = environ.oracle(one) if oracle else null_policy
    try:
        observation, info = env.reset(options=one.options)
        for _ in range(20):
            action = next(actions, None) or policy(observation, info)
            observation, reward, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                return reward, info["private"]
    finally:
        env.close()
    raise AssertionError("the episode did not end")


@pytest.mark.parametrize(
    ("found", "text", "reward", "solved"),
    [
        (None, "1", 1.0, True),
        (None, "0", 0.0, False),
        (None, " 0.25\n", 0.25, False),
        (None, "1e0", 1.0, True),
        (None, "-2", -2.0, False),
        (None, "7.5", 7.5, True),
        (None, "\ufeff1\r\n", 1.0, True),
        ('{"reward": 0.0}', None, 0.0, False),
        ('{"reward": 1}', None, 1.0, True),
        ('{"reward": 0.0}', "1", 0.0, False),
        ('{"reward": 1, "style": 0}', None, 1.0, True),
        ('{"style": 0.5, "tests": 1}', None, 0.75, False),
        ('{"style": 1, "tests": 2}', None, 1.5, True),
        ('{"accuracy": 0.5}', None, 0.5, False),
        ('{"accuracy": 0.5}', "1", 1.0, True),
        ('{"accuracy": 0.5}', "broken", 0.5, False),
        ('{"note": "fine", "reward": 1, "ok": true, "more": [1]}', None, 1.0, True),
        ('{"detail": {"a": 1}}', "0.5", 0.5, False),
        ('{"reward": -1}', None, -1.0, False),
        ('{"reward": null, "style": 1}', None, 1.0, True),
        (json.dumps({**{f"test{n}": 1 for n in range(99)}, "last": 0}), None, 0.99, False),
        ('\ufeff{"reward": 1}\r\n', None, 1.0, True),
    ],
)
def test_reward_files(found: str | None, text: str | None, reward: float, solved: bool) -> None:
    verdict = from_files(found and found.encode(), text and text.encode())
    assert (verdict.reward, verdict.solved) == (reward, solved)
    assert 0.0 <= verdict.progress <= 1.0


@pytest.mark.parametrize(
    ("found", "text", "message"),
    [
        (None, None, "neither"),
        (None, "", "reward.txt is empty"),
        (None, " \n", "reward.txt is empty"),
        (None, "nan", "not a finite number"),
        (None, "-inf", "not a finite number"),
        (None, "PASS", "'PASS' where a number belongs"),
        (None, "1 2", "where a number belongs"),
        ("", None, "reward.json is empty"),
        ('{"reward": NaN}', None, "'reward' of reward.json is not a finite number"),
        ('{"reward": 1e999}', None, "not a finite number"),
        ('{"reward": 1' + "0" * 400 + "}", None, "not a finite number"),
        ('{"reward": 1', None, "reward.json cannot be read"),
        ("[1]", None, "holds a list"),
        ("1", None, "holds a number where an object"),
        ("null", "1", "holds null where an object"),
        ('{"reward": "bad", "style": 1}', None, "the 'reward' of reward.json is a text"),
        ('{"reward": {"value": 1}}', "1", "the 'reward' of reward.json is an object"),
        ("{}", None, "holds no number"),
        ('{"reward": true}', None, "the 'reward' of reward.json is true or false"),
        ('{"reward": "1"}', None, "the 'reward' of reward.json is a text"),
        ('{"note": "1"}', None, "holds no number"),
        ('{"reward": null}', "", "reward.txt is empty"),
        ("[" * 100_000, None, "cannot be read"),
    ],
)
def test_what_is_no_reward_says_why(found: str | None, text: str | None, message: str) -> None:
    with pytest.raises(NoReward, match=message):
        from_files(None if found is None else found.encode(), None if text is None else text.encode())


def test_a_lower_mark_can_be_set() -> None:
    assert from_files(None, b"0.8", solved_at=0.8).solved and not from_files(None, b"0.79", solved_at=0.8).solved


SUMMARY = "noise\n==== short test summary info ====\n"


@pytest.mark.parametrize(
    ("output", "share", "solved"),
    [
        (SUMMARY + "PASSED tests/test_outputs.py::test_a\n==== 1 passed in 0.1s ====", 1.0, True),
        (SUMMARY + "PASSED t.py::a\nFAILED t.py::b - assert 1 == 2\n", 0.5, False),
        (SUMMARY + "PASSED t.py::a\nERROR t.py::b - boom\n", 0.5, False),
        (SUMMARY + "PASSED t.py::a\nERROR t.py::a\n", 0.0, False),
        (SUMMARY + "PASSED t.py::a\nSKIPPED [1] t.py:3: no\nXFAIL t.py::c\n", 1.0, True),
        (SUMMARY + "XPASS t.py::a\nPASSED t.py::b\n", 0.5, False),
        ("\x1b[36m" + SUMMARY + "\x1b[0m\x1b[32mPASSED\x1b[0m t.py::\x1b[1ma\x1b[0m\n", 1.0, True),
        (SUMMARY + "FAILED t.py::a\n" + SUMMARY + "PASSED t.py::a\r\n", 1.0, True),
    ],
)
def test_pytest_summaries(output: str, share: float, solved: bool) -> None:
    verdict = from_pytest(output)
    assert (verdict.progress, verdict.solved, verdict.reward) == (share, solved, float(solved))


@pytest.mark.parametrize("output", ["", "1 passed in 0.1s", SUMMARY, "PASSED t.py::a"])
def test_an_output_without_a_summary_is_no_verdict(output: str) -> None:
    with pytest.raises(NoReward):
        from_pytest(output)


@confined
@pytest.mark.parametrize(
    ("script", "reward", "solved"),
    [
        ("""echo '{"reward": 0.0}' > /logs/verifier/reward.json""", 0.0, False),
        ("""echo '{"reward": 0.4, "style": 1}' > /logs/verifier/reward.json; exit 3""", 0.4, False),
        ("echo 0.5 > /logs/verifier/reward.txt", 0.5, False),
        ("#!/usr/bin/env python3\nopen('/logs/verifier/reward.txt', 'w').write('1')", 1.0, True),
        (
            "\ufeffif [ -f done ]; then\r\n  echo 1\r\nelse\r\n  echo 0\r\nfi > /logs/verifier/reward.txt\r\n",
            0.0,
            False,
        ),
        ('echo "$MARK" > /logs/verifier/reward.txt', 1.0, True),
    ],
)
def test_what_a_script_leaves_is_the_reward(task: Task, script: str, reward: float, solved: bool) -> None:
    got, private = play(task(harbor(script, '[verifier.env]\nMARK = "${UNKNOWN:-1}"\n')))
    assert (got, private["solved"], private["progress"]) == (reward, solved, reward)


@confined
@pytest.mark.parametrize(
    ("script", "toml", "message"),
    [
        ("true", "", "neither reward.txt nor reward.json.*status 0"),
        ("echo oh-no; exit 4", "", "status 4.*oh-no"),
        ("ln -s /etc/hostname /logs/verifier/reward.txt", "", "neither"),
        ("mkdir /logs/verifier/reward.txt", "", "neither"),
        ("echo x > /logs/verifier/reward.txt", "", "where a number belongs"),
        ("sleep 30", "[verifier]\ntimeout_sec = 0.5\n", "did not end within 0.5 s"),
        ("apt-get install -y no-such-thing; echo 1 > /logs/verifier/reward.txt", "", "Debian package no-such-thing"),
        ("uvx --with no-such-module pytest x; echo 0 > /logs/verifier/reward.txt", "", "Python package no-such-module"),
        ("python3 -m pip install pytest numpy==0.0.1; echo 1 > /logs/verifier/reward.txt", "", "numpy==0.0.1"),
        ("curl -s https://example.com/x; echo 1 > /logs/verifier/reward.txt", "", "address example.com"),
    ],
)
def test_no_verdict_is_an_error_of_the_trial(task: Task, script: str, toml: str, message: str) -> None:
    with pytest.raises(EnvironmentFault, match=rf"(?s)the task one cannot be scored.*{message}"):
        play(task(harbor(script, toml)))


@confined
@pytest.mark.parametrize(
    "dockerfile", ["RUN useradd -m al\nUSER al\nWORKDIR /home/al\n", "USER 1234:1234\nWORKDIR /tmp\n"]
)
def test_a_task_whose_image_has_a_user(task: Task, dockerfile: str) -> None:
    script = "#!/bin/bash\nif [ -f done ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    solve = {"solution/solve.sh": "#!/bin/bash\ntouch done\n"}
    folder = task(harbor(script, **solve, **{"environment/Dockerfile": f"FROM scratch\n{dockerfile}"}))
    assert play(folder, oracle=True)[0] == 1.0
    assert play(folder)[0] == 0.0


PUBLISHED = """#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env
if [ "$PWD" = "/" ]; then exit 1; fi
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
[ -s /logs/verifier/ctrf.json ] || rm /logs/verifier/reward.txt
"""
TESTS = "from pathlib import Path\n\n\ndef test_it():\n    assert Path('done').exists()\n"


@confined
def test_the_published_script_of_harbor_runs_without_a_network(task: Task) -> None:
    folder = task(harbor(PUBLISHED, **{"tests/test_outputs.py": TESTS}))
    assert play(folder, oracle=True) == (1.0, {"solved": True, "progress": 1.0, "commands": 1})
    assert play(folder)[0] == 0.0
    cheat = "echo 'def pytest_runtest_call(item): pass' > /conftest.py; printf '[pytest]\\naddopts=--co' > /pytest.ini"
    assert play(folder, cheat, "cp /conftest.py /app/pytest.py")[0] == 0.0


RUN_TESTS = """#!/bin/bash
source $TEST_DIR/setup-uv-pytest.sh
bash $TEST_DIR/run-uv-pytest.sh
"""
SETUP = """apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.7.13/install.sh | sh
source $HOME/.local/bin/env
uv venv .tbench-testing
source .tbench-testing/bin/activate
uv pip install pytest==8.4.1
"""


@confined
def test_the_published_script_of_terminal_bench_runs_without_a_network(task: Task) -> None:
    files = {
        "task.yaml": "instruction: Do it.\nparser_name: pytest\nmax_test_timeout_sec: 60\n",
        "Dockerfile": "FROM scratch\nWORKDIR /app\n",
        "run-tests.sh": RUN_TESTS,
        "solution.sh": "#!/bin/bash\ntouch done\n",
        "tests/setup-uv-pytest.sh": SETUP,
        "tests/run-uv-pytest.sh": "uv run pytest $TEST_DIR/test_outputs.py -rA\n",
        "tests/test_outputs.py": TESTS + "\n\ndef test_more():\n    pass\n",
    }
    folder = task(files)
    assert play(folder, oracle=True) == (1.0, {"solved": True, "progress": 1.0, "commands": 1})
    assert play(folder) == (0.0, {"solved": False, "progress": 0.5, "commands": 0})
    task({"task.yaml": "instruction: Do it.\nmax_test_timeout_sec: 0.2\n", "run-tests.sh": "sleep 9\n"})
    assert play(folder)[0] == 0.0
    task({"task.yaml": "instruction: Do it.\n", "run-tests.sh": "echo nothing\n"})
    with pytest.raises(EnvironmentFault, match="short test summary info"):
        play(folder)


@confined
def test_a_server_of_the_agent_lives_on_into_the_tests(task: Task) -> None:
    test = "curl -s http://localhost:8123/done > /logs/verifier/reward.txt"
    serve = "echo 1 > done; (python3 -m http.server 8123 >/dev/null 2>&1 &) ; sleep 1"
    assert play(task(harbor(test)), serve)[0] == 1.0


@confined
def test_the_oracle_has_all_files_of_the_solution_and_the_agent_none(task: Task) -> None:
    files = harbor("[ -f done ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt")
    files |= {"solution/solve.sh": "bash /solution/part.sh $WORD\n", "solution/part.sh": "[ $1 = go ] && touch done\n"}
    folder = task(files | {"task.toml": '[solution.env]\nWORD = "go"\n'})
    assert play(folder, oracle=True)[0] == 1.0
    assert play(folder, "bash /solution/solve.sh", "bash /solution/solve.sh # " + "0" * 64)[0] == 0.0


@confined
def test_a_task_of_several_steps(task: Task) -> None:
    steps = {
        "task.toml": '[[steps]]\nname = "a"\nmin_reward = 0.5\n[[steps]]\nname = "b"\n[steps.agent]\ntimeout_sec = 60\n',
        "environment/Dockerfile": "FROM scratch\nWORKDIR /app\n",
        "tests/shared.sh": "score() { [ -f $1 ] && echo 1 || echo ${2:-0}; }\n",
        "steps/a/instruction.md": "Make a.",
        "steps/a/tests/test.sh": ". /tests/shared.sh; score a > /logs/verifier/reward.txt\n",
        "steps/a/solution/solve.sh": "touch a\n",
        "steps/b/instruction.md": "Make b from {the given file}.",
        "steps/b/workdir/given.txt": "given\n",
        "steps/b/tests/test.sh": ". /tests/shared.sh; score b 0.5 > /logs/verifier/reward.txt\n",
        "steps/b/solution/solve.sh": "cp given.txt b\n",
    }
    folder = task(steps)
    assert play(folder, oracle=True) == (1.0, {"solved": True, "progress": 1.0, "commands": 2})
    assert play(folder) == (0.0, {"solved": False, "progress": 0.0, "commands": 0})
    env = environment(str(folder), engine="bubblewrap").make()
    try:
        _, info = env.reset(options={"task": "one"})
        assert info["public"]["instruction"] == "Make a."
        env.step({"name": "bash", "arguments": {"command": "touch a; cd /tmp"}})
        observation, reward, terminated, _, _ = env.step({"name": "finish", "arguments": {}})
        assert "Make b from {the given file}." in observation and (reward, terminated) == (0.0, False)
        *_, info = env.step({"name": "finish", "arguments": {}})
        assert info["private"] == {"solved": False, "progress": 0.75, "commands": 1}
    finally:
        env.close()


@confined
def test_the_agents_time_is_that_of_its_commands(task: Task) -> None:
    test = "[ -f done ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
    folder = task(harbor(test, "[agent]\ntimeout_sec = 1.0\n"))
    assert play(folder, "touch done; sleep 9", "rm done") == (1.0, {"solved": True, "progress": 1.0, "commands": 1})


def test_the_reward_is_part_of_the_identity(task: Task) -> None:
    folder = task(harbor("true"))
    assert environment(str(folder)).version != environment(str(folder), solved_at=0.5).version
    before = environment(str(folder)).version
    task({"tests/helper.json": json.dumps({"a": 1})})
    assert environment(str(folder)).version != before
