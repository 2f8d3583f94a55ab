"""One environment over processes: its facts, its policies, warm processes, and what a child may see."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harnesslab
from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable, NothingPlayable, TasksLeftOut
from harnesslab.rollout.env import TextEnv
from harnesslab.rollout.process.child import Child, Deadlines
from harnesslab.rollout.process.environment import ProcessEnvironment
from harnesslab.rollout.process.pool import Pool
from harnesslab.rollout.process.serve import _HANDLERS
from harnesslab.rollout.registry import load_environment
from tests.rollout.process.conftest import FAULTY, gone_soon, is_there

Make = Callable[..., ProcessEnvironment]


def facts(env: TextEnv) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(env.step("facts")[0])
    return found


def test_it_is_an_environment(faulty: Make) -> None:
    world = faulty()
    assert (world.name, world.version, world.max_steps) == ("faulty", "1", 5)
    assert [task.id for task in world.tasks("gate")] == ["gate-0", "gate-1", "gate-2"]
    assert world.tasks("gate") is world.tasks("gate")
    assert (world.starter() / "harness.toml").is_file()
    env = world.make()
    assert isinstance(env, TextEnv)
    observation, info = env.reset(seed=0, options={})
    assert observation == "Room 0." and info["public"]["instruction"] == "Reach room 3."
    assert env.step("right") == ("Room 1.", 0.0, False, False, {**info, "private": {"solved": False}})
    env.close()


def test_policies_live_in_a_process_of_their_own(faulty: Make) -> None:
    world = faulty()
    task = world.tasks("search")[0]
    first, second, null = world.oracle(task), world.oracle(task), world.null(task)
    assert null("Room 0.", {}) == "nothing in search-0"
    for policy in (first, second, first, second, first):
        assert policy("Room 0.", {}) == "right"
    assert first is not second and second("Room 0.", {}) == "right"
    with pytest.raises(EnvironmentFault, match="policy_act raised RuntimeError: there are three steps only"):
        first("Room 0.", {})


def test_only_the_latest_policies_are_kept(faulty: Make) -> None:
    world = faulty()
    task = world.tasks("search")[0]
    policies = [world.oracle(task) for _ in range(65)]
    assert policies[-1]("Room 0.", {}) == "right"
    with pytest.raises(ConfigError, match="only the last 64 are kept"):
        policies[0]("Room 0.", {})


def test_a_warm_process_is_used_again(faulty: Make) -> None:
    world = faulty()
    pids = set()
    for _ in range(3):
        env = world.make()
        env.reset(seed=0, options={})
        pids.add(facts(env)["pid"])
        env.close()
    assert len(pids) == 1
    both = [world.make() for _ in range(2)]
    for env in both:
        env.reset(seed=0, options={})
    assert len({facts(env)["pid"] for env in both}) == 2
    for env in both:
        env.close()


def test_a_warm_process_that_died_meanwhile_is_replaced_in_silence(faulty: Make) -> None:
    world = faulty()
    env = world.make()
    env.reset(seed=0, options={})
    pid = facts(env)["pid"]
    env.close()
    os.kill(pid, signal.SIGKILL)
    assert gone_soon(pid)
    env = world.make()
    assert env.reset(seed=0, options={})[0] == "Room 0."
    env.close()


def test_idle_processes_end(faulty: Make) -> None:
    pool = Pool(faulty().launch, idle_s=0.2)
    child = pool.take()
    pool.give(child)
    assert pool.idle() == 1 and gone_soon(child.pid)
    assert pool.idle() == 0
    pool.close()


def test_processes_end_with_their_environment(faulty: Make) -> None:
    world: Any = load_environment(FAULTY)
    oracle = world.oracle(world.tasks("search")[0])
    env = world.make()
    env.reset(seed=0, options={})
    pid = facts(env)["pid"]
    env.close()
    del world, env, oracle
    gc.collect()
    assert gone_soon(pid)


def test_an_instance_outlives_its_environment_until_it_is_closed(faulty: Make) -> None:
    world = faulty()
    env = world.make()
    env.reset(seed=0, options={})
    pid = facts(env)["pid"]
    world.close()
    assert env.step("right")[0] == "Room 1."
    env.close()
    assert gone_soon(pid)
    with pytest.raises(EnvironmentFault, match="'faulty' was closed"):
        world.make().reset(seed=0)


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_processes_end_with_us(how: str) -> None:
    code = (
        "import json, os, signal; from harnesslab.rollout.registry import load_environment\n"
        f"world = load_environment({FAULTY!r}); env = world.make(); env.reset(seed=0, options={{}})\n"
        "seen = json.loads(env.step('facts')[0]); print(seen['pid'], seen['cwd'], flush=True)\n"
        + ("os.kill(os.getpid(), signal.SIGKILL)" if how == "kill" else "")
    )
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=variables)
    pid, scratch = done.stdout.split()
    assert gone_soon(int(pid)) and not Path(scratch).exists(), done.stderr


def test_what_a_child_sees(faulty: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("FAULTY_PASSED", "yes")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("HARNESSLAB_DATA", str(tmp_path))
    env = faulty().make()
    env.reset(seed=0, options={})
    seen = facts(env)
    environ = seen["environ"]
    assert "OPENAI_API_KEY" not in environ and "PYTHONPATH" not in environ
    assert environ["FAULTY_PASSED"] == "yes" and environ["GREETING"] == "hello"
    assert environ["HARNESSLAB_DATA"] == str(tmp_path) and environ["PYTHONHASHSEED"] == "0"
    assert environ["HOME"] == environ["TMPDIR"] == seen["cwd"] != str(Path.home())
    env.close()
    assert is_there(seen["pid"]) and Path(seen["cwd"]).is_dir()


def test_a_bare_python_imports_only_what_it_needs_of_ours(faulty: Make) -> None:
    base = getattr(sys, "_base_executable", sys.executable)
    launch = replace(faulty().launch, python=base)
    world = ProcessEnvironment(launch, Path(FAULTY))
    env = world.make()
    env.reset(seed=0, options={})
    seen = facts(env)
    env.close()
    world.close()
    assert seen["harnesslab"] == harnesslab.__file__
    if base != sys.executable:
        assert str(Path(harnesslab.__file__).parents[1]) not in seen["path"], "our packages must not clash with its own"
    assert set(seen["modules"]) == {
        "harnesslab",
        "harnesslab._version",
        "harnesslab.errors",
        "harnesslab.lazy",
        "harnesslab.redaction",
        "harnesslab.rollout",
        "harnesslab.rollout.null",
        "harnesslab.rollout.env",
        "harnesslab.rollout.options",
        "harnesslab.rollout.process",
        "harnesslab.subproc",
        "harnesslab.subproc.frames",
        "harnesslab.rollout.process.serve",
        "harnesslab.rollout.process.wire",
        "harnesslab_folder_faulty",
        "harnesslab_folder_faulty.env",
    }


def test_its_folder_goes_with_it(faulty: Make) -> None:
    world = faulty()
    env = world.make()
    env.reset(seed=0, options={})
    seen = facts(env)
    env.close()
    world.close()
    assert gone_soon(seen["pid"]) and not Path(seen["cwd"]).exists()


def test_missing_data_is_told_as_it_is(faulty: Make) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"^The map of the corridor is missing\. Get it with"):
        _ = faulty(broken="version").version


@pytest.mark.parametrize("request_name", sorted(_HANDLERS))
def test_every_request_has_a_deadline(request_name: str) -> None:
    assert Deadlines().of(request_name) > 0


def test_tasks_that_are_left_out_are_told_with_their_reasons(faulty: Make) -> None:
    world = faulty(unplayable={"north": "its map is torn"})
    assert world.unplayable == {"north": "its map is torn"} and faulty().unplayable == {}
    with pytest.warns(TasksLeftOut, match="1 task of the environment 'faulty'.*\\n  north: its map is torn"):
        world.tasks("search")


def test_an_environment_without_a_playable_task_says_why(faulty: Make) -> None:
    with pytest.raises(NothingPlayable, match="no room has a floor") as caught:
        _ = faulty(broken="all").name
    assert caught.value.unplayable == {"north": "no floor", "south": "no floor"}


def test_wrong_options_are_told_with_the_right_ones(faulty: Make) -> None:
    with pytest.raises(ConfigError, match=r"'colour'.*Its options: faults, broken, unplayable"):
        _ = faulty(colour="red").name


def test_an_environment_that_does_not_start(faulty: Make) -> None:
    with pytest.raises(EnvironmentFault, match="start raised ImportError: no module named corridor_engine"):
        _ = faulty(broken="import").name


def test_tasks_that_are_none(faulty: Make) -> None:
    with pytest.raises(EnvironmentFault, match="'faulty' listed no tasks: a task's seed must be a whole number"):
        faulty(broken="tasks").tasks("search")


def test_a_python_that_is_not_there(faulty: Make) -> None:
    launch = replace(faulty().launch, python="/no/such/python")
    with pytest.raises(EnvironmentUnavailable, match="cannot be started with /no/such/python: No such file"):
        Child(launch)


def test_a_forked_process_leaves_its_parents_children_alone(faulty: Make) -> None:
    world = faulty()
    policy = world.oracle(world.tasks("search")[0])
    pid = os.fork()
    if pid == 0:
        world.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert policy("Room 0.", {}) == "right"
    env = world.make()
    assert env.reset(seed=0, options={})[0] == "Room 0."
    env.close()
