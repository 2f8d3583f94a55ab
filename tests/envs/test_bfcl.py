"""bfcl: turns and tools through the protocol, what agents write is never evaluated, and the package's own verdicts."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import ConfigError, EnvironmentFault, OrderError
from harnesslab.harness.load import load_folder
from harnesslab.rollout.env import SPLITS, Environment, Task
from harnesslab.rollout.process.folder import find_folder
from harnesslab.rollout.process.load import how
from harnesslab.rollout.process.venv import venv_of
from harnesslab.rollout.registry import load_environment
from harnesslab.testing import check_env

ROOT = Path(__file__).parents[2]
folder = find_folder("bfcl")
assert folder is not None
pytestmark = pytest.mark.skipif(not how(folder), reason="bfcl-eval is not here: harnesslab envs install bfcl")


@pytest.fixture(scope="module")
def bfcl() -> Iterator[Any]:
    made: Any = load_environment("bfcl")
    yield made
    if hasattr(made, "close"):
        made.close()


def started(bfcl: Environment, task_id: str) -> tuple[Any, str, dict[str, Any]]:
    env = bfcl.make()
    observation, info = env.reset(options={"task": task_id})
    return env, observation, info


def reply(message: str = "Done.") -> dict[str, Any]:
    return {"name": "reply_to_user", "arguments": {"message": message}}


def test_it_keeps_the_contract() -> None:
    check_env("bfcl", limit=4).raise_for_failures()


def test_splits_keep_the_variants_of_a_scenario_together(bfcl: Environment) -> None:
    owner: dict[str, str] = {}
    for split, count in zip(SPLITS, (240, 160, 400), strict=True):
        tasks = bfcl.tasks(split)
        assert len(tasks) == count
        assert set(Counter(task.family for task in tasks).values()) == {count // 4}
        for task in tasks:
            assert owner.setdefault(task.id.rsplit("_", 1)[1], split) == split
        leading = Counter(int(task.id.rsplit("_", 1)[1]) // 50 for task in tasks[:16])
        assert set(leading.values()) == {4}
        assert len({(task.family, int(task.id.rsplit("_", 1)[1]) // 50) for task in tasks[:16]}) == 16
    assert len(owner) == 200


def test_a_conversation(bfcl: Environment) -> None:
    env, observation, info = started(bfcl, "multi_turn_base_0")
    assert observation == info["public"]["instruction"]
    assert observation.startswith("The user's first request: Move 'final_report.pdf'")
    assert info["public"]["tools"][-1]["function"]["name"] == "reply_to_user"
    answer, reward, over, _, info = env.step({"name": "cd", "arguments": {"folder": "document"}})
    assert answer == '{"current_working_directory": "document"}' and (reward, over) == (0.0, False)
    assert info["public"]["invalid"] is False and info["private"]["progress"] == 0
    env.step({"name": "mkdir", "arguments": {"dir_name": "temp"}})
    env.step({"name": "mv", "arguments": {"source": "final_report.pdf", "destination": "temp"}})
    said, _, _, _, info = env.step(reply())
    assert said.startswith("The user's request number 2: Perform a detailed search using grep")
    assert info["private"] == {"solved": False, "progress": 0.25, "error": "", "turn": 1}
    _, _, _, _, info = env.step(reply("I would rather not."))
    assert info["private"]["error"] == "multi_turn:empty_turn_model_response"
    env.close()


def test_a_wrong_state_is_a_fault(bfcl: Environment) -> None:
    env, _, _ = started(bfcl, "multi_turn_base_0")
    env.step({"name": "mkdir", "arguments": {"dir_name": "elsewhere"}})
    _, _, _, _, info = env.step(reply())
    assert info["private"]["error"] == "multi_turn:instance_state_mismatch"
    env.close()


def test_held_out_functions_arrive_with_their_turn(bfcl: Environment) -> None:
    env, _, info = started(bfcl, "multi_turn_miss_func_0")
    assert "sort" not in {tool["function"]["name"] for tool in info["public"]["tools"]}
    for _ in range(2):
        _, _, _, _, info = env.step(reply())
        assert "tools" not in info["public"], "tools are told again only when they change"
    said, _, _, _, info = env.step(reply())
    assert said.endswith("I have updated some more functions you can choose from. What about now?\nNew tools: sort.")
    assert "sort" in {tool["function"]["name"] for tool in info["public"]["tools"]}
    env.close()


def test_actions_that_are_no_calls(bfcl: Environment) -> None:
    env, _, _ = started(bfcl, "multi_turn_base_0")
    wrong = [
        ("cd('document')", "That is no tool call"),
        ({"name": "_load_scenario", "arguments": {"scenario": {}}}, "There is no tool '_load_scenario'"),
        ({"name": "__class__", "arguments": {}}, "There is no tool"),
        ({"name": "cd", "arguments": {"dir": "document"}}, "cd does not take these arguments"),
        ({"name": "cd", "arguments": ["document"]}, "must be a JSON object"),
    ]
    for action, words in wrong:
        observation, _, over, _, info = env.step(action)
        assert words in observation and info["public"]["invalid"] is True and not over
    env.close()


def test_what_an_agent_writes_is_data(bfcl: Environment, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    text = f"'); open({str(trap)!r}, 'w').write('x'); cd(folder='"
    env, _, _ = started(bfcl, "multi_turn_base_0")
    env.step({"name": "cd", "arguments": {"folder": "document"}})
    env.step({"name": "echo", "arguments": {"content": text, "file_name": "final_report.pdf"}})
    observation, *_ = env.step({"name": "cat", "arguments": {"file_name": "final_report.pdf"}})
    assert json.loads(observation)["file_content"] == text
    assert not trap.exists()
    env.close()


def test_wrong_calls(bfcl: Environment) -> None:
    env = bfcl.make()
    with pytest.raises(OrderError):
        env.step(reply())
    with pytest.raises(EnvironmentFault, match="takes a Task's options"):
        env.reset(options={"task": "multi_turn_base_200"})
    env.close()
    with pytest.raises(ConfigError, match="max_steps must be 1 or more"):
        load_environment("bfcl", max_steps=0).tasks("search")


COMPARE = """
import json, random, sys
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker
from harnesslab_envs.bfcl.env import Grader
from harnesslab_envs.bfcl.records import Call, package_data, read_records
from harnesslab_envs.bfcl.world import World

draw, records, verdicts = random.Random(0), list(read_records().values()), []
for number, record in enumerate(draw.sample(records, 60)):
    lines = (package_data() / f"BFCL_v4_multi_turn_{record.category}.json").read_text("utf-8").splitlines()
    entry = next(one for one in map(json.loads, lines) if one["id"] == record.id)
    lines = (package_data() / "possible_answer" / f"BFCL_v4_multi_turn_{record.category}.json").read_text("utf-8")
    gold = next(one for one in map(json.loads, lines.splitlines()) if one["id"] == record.id)["ground_truth"]
    # A third as published, a third with a call left out, a third with one done twice.
    turns = [list(turn) for turn in record.gold]
    busy = [turn for turn in turns if turn]
    if number % 3 == 1:
        chosen = draw.choice(busy)
        chosen.pop(draw.randrange(len(chosen)))
    if number % 3 == 2:
        chosen = draw.choice(busy)
        chosen.insert(0, draw.choice(chosen))
    text = lambda call: f"{call.name}({', '.join([*map(repr, call.args), *(f'{k}={v!r}' for k, v in call.kwargs.items())])})"
    official = multi_turn_checker([[[text(call)] for call in turn] for turn in turns], gold, entry, "", f"m{number}")
    grader, world = Grader(record), World(record)
    for turn, calls in enumerate(turns):
        grader.end_turn(turn, world, [world.call(call) for call in calls])
    verdicts.append([official["valid"], official.get("error_type", ""), grader.error])
print(json.dumps(verdicts))
"""


def test_verdicts_are_those_of_the_package() -> None:
    """Some trajectories, right and spoilt, judged here and by the package's own ``multi_turn_checker``."""
    assert folder is not None
    done = subprocess.run(
        [str(venv_of(folder).python), "-c", COMPARE],
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'envs'}", "TZ": "UTC"},
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    verdicts = json.loads(done.stdout.splitlines()[-1])
    assert [ours for _, _, ours in verdicts] == [theirs for _, theirs, _ in verdicts]
    assert {valid for valid, _, _ in verdicts} == {True, False}


def test_the_starter_loads(bfcl: Environment) -> None:
    harness = load_folder(bfcl.starter())
    assert harness.name == "bfcl" and harness.protocol == "text"


def test_tasks_carry_only_their_name(bfcl: Environment) -> None:
    task: Task = bfcl.tasks("gate")[0]
    assert dict(task.options) == {"task": task.id}
