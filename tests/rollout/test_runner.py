"""The runner: order, early stop, faults that cost one episode, cancellation that leaves no environment open."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

import pytest

import harnesslab as hl
from harnesslab.errors import BackboneError
from harnesslab.harness import Pipeline, load_folder
from harnesslab.rollout.records import Episode
from harnesslab.rollout.runner import Job, Runner
from tests.conftest import always
from tests.worlds import STARTER, CorridorWorld


def jobs(world: CorridorWorld) -> list[Job]:
    pipeline = Pipeline(load_folder(STARTER))
    return [Job("baseline", pipeline, task) for task in world.tasks("search")]


def play_all(world: CorridorWorld, llm: Any, workers: int = 1, stop_after: int = 99) -> list[Episode]:
    found: list[Episode] = []

    def sink(job: Job, episode: Episode) -> bool:
        found.append(episode)
        return len(found) >= stop_after

    asyncio.run(Runner(world, llm, workers=workers).run(jobs(world), sink))
    return found


def test_one_worker_plays_in_order_and_closes_its_environment() -> None:
    world = CorridorWorld()
    found = play_all(world, always("right"))
    assert [episode.task_id for episode in found] == [f"search-{n}" for n in range(8)]
    assert all(episode.solved for episode in found)
    assert len(world.made) == 1 and world.made[0].closed


def test_several_workers_play_every_job_once() -> None:
    world = CorridorWorld()
    found = play_all(world, always("right"), workers=3)
    assert sorted(episode.task_id for episode in found) == [f"search-{n}" for n in range(8)]
    assert 1 <= len(world.made) <= 3 and all(env.closed for env in world.made)


def test_the_sink_can_stop_the_rest() -> None:
    assert len(play_all(CorridorWorld(), always("right"), stop_after=3)) == 3


def test_a_broken_environment_costs_one_episode_and_is_replaced() -> None:
    world = CorridorWorld(fault="step", faulty=["2"])
    found = play_all(world, always("right"))
    assert [episode.task_id for episode in found if episode.status == "unscorable"] == ["search-2"]
    assert len(found) == 8 and len(world.made) == 2 and all(env.closed for env in world.made)


def test_a_dead_backbone_stops_the_run_after_keeping_what_was_finished() -> None:
    world, found = CorridorWorld(), []
    llm = hl.LLM.scripted(["Action: right"] * 3)

    def sink(job: Job, episode: Episode) -> bool:
        found.append(episode)
        return False

    with pytest.raises(BackboneError, match="ended after"):
        asyncio.run(Runner(world, llm).run(jobs(world), sink))
    assert [episode.task_id for episode in found] == ["search-0", "search-1"]
    assert world.made[0].closed


def test_cancellation_closes_the_environments() -> None:
    world = CorridorWorld()

    async def main() -> None:
        started = threading.Event()  # a backbone of one's own is asked on another loop

        class Slow:
            identity: ClassVar[dict[str, str]] = {"model": "slow"}
            constrains = False

            async def complete(self, request: Any, *, repeat: int = 0) -> Any:
                started.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(Runner(world, Slow(), workers=2).run(jobs(world), lambda job, episode: False))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert world.made and all(env.closed for env in world.made)


def test_a_backbone_may_ask_for_several_episodes_at_once() -> None:
    llm = hl.LLM("some-model", "http://127.0.0.1:9/v1", "key", connection=hl.Connection(concurrency=3))
    assert Runner(CorridorWorld(), llm).workers == 3
    assert Runner(CorridorWorld(), llm, workers=1).workers == 1
    assert Runner(CorridorWorld(), hl.LLM.random(0)).workers == 1
