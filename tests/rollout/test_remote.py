"""Episodes on other workers give the same records as here, whatever the executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BackboneError
from harnesslab.harness import Pipeline, load_folder
from harnesslab.rollout.records import Episode
from harnesslab.rollout.runner import Job, Runner
from tests.worlds import STARTER, CorridorWorld


class PlainWorld(CorridorWorld):
    """The corridor without the bookkeeping of tests, so that it pickles."""

    def make(self) -> Any:
        from tests.worlds import Corridor

        return Corridor(self.fault)


def play_on(executor: Executor | None, world: PlainWorld, llm: Any = None, spend: Any = None) -> list[Episode]:
    pipeline = Pipeline(load_folder(STARTER))
    found: list[Episode] = []
    jobs = [Job("baseline", pipeline, task) for task in world.tasks("search")]
    runner = Runner(world, llm or hl.LLM.random(3), workers=3, executor=executor, spend=spend)
    asyncio.run(runner.run(jobs, lambda job, episode: bool(found.append(episode))))
    return sorted(found, key=lambda episode: episode.task_id)


def actions(episodes: list[Episode]) -> list[Any]:
    return [(e.task_id, e.solved, e.length, [step.action for step in e.steps]) for e in episodes]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_any_executor_gives_the_same_records(kind: str) -> None:
    here = actions(play_on(None, PlainWorld()))
    pool = ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with pool:
        assert actions(play_on(pool, PlainWorld())) == here


def test_dask_is_an_executor_too() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        assert actions(play_on(client.get_executor(), PlainWorld())) == actions(play_on(None, PlainWorld()))


def test_a_fault_on_a_worker_costs_its_episode_and_the_meter_counts() -> None:
    seen: list[Any] = []
    with ThreadPoolExecutor(2) as pool:
        broken = play_on(pool, PlainWorld(fault="step"))
    assert {episode.status for episode in broken} == {"unscorable"} and len(broken) == 8
    with ThreadPoolExecutor(2) as pool:
        played = play_on(pool, PlainWorld(), spend=seen.append)
    assert len(seen) == sum(episode.length for episode in played)


def test_a_dead_backbone_on_a_worker_stops_the_run() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(BackboneError):
        play_on(pool, PlainWorld(), hl.LLM.scripted([]))


def test_the_trainer_hands_its_executor_down(open_lab: Callable[..., Any]) -> None:
    with ThreadPoolExecutor(2) as pool:
        trainer = hl.Trainer(
            open_lab(env=PlainWorld()),
            hl.LLM.scripted(lambda messages: "Action: right"),
            settings={"progress": False, "workers": 2},
            executor=pool,
        )
        assert trainer.measure().solved == 8
