"""Killed, hung and lying processes: each costs one episode, with a reason; the next one plays on."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from harnesslab.errors import EnvironmentFault, OrderError
from harnesslab.harness import Pipeline, load_folder
from harnesslab.rollout.env import SPLITS
from harnesslab.rollout.records import Episode
from harnesslab.rollout.runner import Job, Runner
from tests.conftest import always
from tests.rollout.process.conftest import gone_soon, is_there

REASONS = {
    "killed": "was killed by SIGKILL during step",
    "exit": "ended with exit code 3 during step",
    "sys.exit": "ended with exit code 4 during step",
    "hang": "did not answer step within 3 s and was killed",
    "spin": "did not answer step within 3 s and was killed",
    "hang in reset": "did not answer reset within 5 s and was killed",
    "garbage": "not a frame: it announces 4294967295 bytes",
    "no json": "not a frame: it is not plain JSON",
    "nested": "not a frame: it is not plain JSON",
    "nan on the wire": "not a frame: it is not plain JSON: it holds NaN",
    "other number": "answered step with something that was not asked for",
    "no dict": "answered step with something that was not asked for",
    "half a frame": "ended with exit code 0 during step",
    "memory": "the environment's step ran out of its memory, 300 MB",
    "raise": "the environment's step raised KeyError: 'no such key'",
    "fault": "the corridor is closed today",
    "three values": "step must return 5 values",
    "nan": "step returned a value that cannot be sent: it is not plain JSON",
    "object": "step returned a value that cannot be sent: it is not plain JSON",
    "huge": "step returned a value that cannot be sent: it takes",
    "no info": "must return info with the parts",
    "big number": "a reward or progress that is not a number",
    "admissible": "['admissible'] is a int, not a list",
    "tools": "['tools'] cannot be used: tool 1 is not a function schema",
}


def play_all(world: Any, workers: int) -> list[Episode]:
    pipeline = Pipeline(load_folder(world.starter()))
    found: list[Episode] = []
    jobs = [Job("baseline", pipeline, task) for task in world.tasks("search")]
    runner = Runner(world, always("right"), workers=workers)
    asyncio.run(runner.run(jobs, lambda job, episode: bool(found.append(episode))))
    return sorted(found, key=lambda episode: int(episode.task_id.rpartition("-")[2]))


@pytest.mark.parametrize("workers", [1, 4])
def test_every_fault_costs_its_episode_and_no_other(faulty: Any, workers: int) -> None:
    found = play_all(faulty(faults=list(REASONS)), workers)
    assert len(found) == len(REASONS) + 3
    wrong = {}
    for episode in found:
        if episode.family == "plain":
            assert episode.solved and episode.status == "finished", episode.reason
        else:
            assert (episode.status, episode.owner, episode.solved) == ("unscorable", "environment", False)
            if REASONS[episode.family] not in episode.reason:
                wrong[episode.family] = episode.reason
    assert not wrong


def test_many_hung_processes_are_waited_for_at_once(faulty: Any) -> None:
    world = faulty(faults=["hang"] * 12)
    [world.tasks(split) for split in SPLITS]
    pipeline = Pipeline(load_folder(world.starter()))
    jobs = [Job("baseline", pipeline, task) for task in world.tasks("search") if task.family == "hang"]
    envs: list[Any] = [world.make() for _ in jobs]
    for env, job in zip(envs, jobs, strict=True):
        env.reset(seed=0, options=job.task.options)
    ready = iter(envs)

    class Warm:
        """The same world, whose instances have their processes already."""

        name, version, max_steps = "warm", "1", 5
        tasks, oracle, starter = world.tasks, world.oracle, world.starter

        def make(self) -> Any:
            return next(ready)

    found: list[Episode] = []
    started = time.monotonic()
    runner = Runner(Warm(), always("right"), workers=12)
    asyncio.run(runner.run(jobs, lambda job, episode: bool(found.append(episode))))
    assert len(found) == 12 and all("within 3 s" in episode.reason for episode in found)
    assert time.monotonic() - started < 18, "twelve deadlines of three seconds, one after another, take 36"


def test_last_words_are_told(faulty: Any) -> None:
    world = faulty()
    env = world.make()
    env.reset(seed=0, options={"fault": "exit"})
    with pytest.raises(EnvironmentFault, match=r"exit code 3 during step; its last words: .*the roof fell") as told:
        env.step("print the roof fell")
    assert len(str(told.value)) < 1_000
    env.close()


def test_what_an_environment_prints_is_no_frame(faulty: Any) -> None:
    env = faulty().make()
    env.reset(seed=0, options={})
    for _ in range(5):
        assert env.step("print much")[0] == "Room 0."
    assert env.step("right")[0] == "Room 1."
    env.close()


def test_a_lone_surrogate_is_replaced_both_ways(faulty: Any) -> None:
    env = faulty().make()
    env.reset(seed=0, options={})
    assert env.step("surrogate")[0] == "lone ?"
    assert env.step("\ud800")[0] == "Room 0."
    env.close()


def test_an_action_that_cannot_be_sent_is_a_fault(faulty: Any) -> None:
    env = faulty().make()
    env.reset(seed=0, options={})
    with pytest.raises(EnvironmentFault, match="given to the environment's step cannot be sent"):
        env.step({"name": object()})
    env.close()


def test_a_process_dies_with_all_that_it_started(faulty: Any) -> None:
    env = faulty().make()
    env.reset(seed=0, options={"fault": "raise"})
    pid, grandchild = json.loads(env.step("facts")[0])["pid"], int(env.step("child")[0])
    assert is_there(pid) and is_there(grandchild)
    with pytest.raises(EnvironmentFault):
        env.step("right")
    env.close()
    assert gone_soon(pid) and gone_soon(grandchild)


def test_close_cuts_off_a_call_in_another_thread(faulty: Any) -> None:
    env = faulty().make()
    env.reset(seed=0, options={"fault": "hang"})
    pid = json.loads(env.step("facts")[0])["pid"]
    raised: list[BaseException] = []
    begun = threading.Event()

    def call() -> None:
        begun.set()
        try:
            env.step("right")
        except EnvironmentFault as fault:
            raised.append(fault)

    thread = threading.Thread(target=call)
    thread.start()
    begun.wait()
    started = time.monotonic()
    env.close()
    assert time.monotonic() - started < 2, "long before the step's deadline of three seconds"
    thread.join(5)
    assert not thread.is_alive() and gone_soon(pid)
    env.close()


@pytest.mark.parametrize("fault", ["hang in close", "raise in close"])
def test_an_instance_that_cannot_close_costs_nothing(faulty: Any, fault: str) -> None:
    world = faulty()
    env = world.make()
    env.reset(seed=0, options={"fault": fault})
    pid = json.loads(env.step("facts")[0])["pid"]
    env.close()
    other = world.make()
    assert other.reset(seed=0, options={})[0] == "Room 0."
    assert json.loads(other.step("facts")[0])["pid"] != pid and gone_soon(pid)
    other.close()


def test_order(faulty: Any) -> None:
    env = faulty().make()
    with pytest.raises(OrderError, match="call reset"):
        env.step("right")
    env.close()
    env.close()
    with pytest.raises(OrderError, match="was closed"):
        env.reset(seed=0)
