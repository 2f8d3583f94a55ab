"""Plays many episodes: a few workers, each with its own environment, results handed out as they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

from harnesslab.errors import BudgetExceeded, EnvironmentFault
from harnesslab.harness.pipeline import Pipeline
from harnesslab.llm.types import MinimalBackbone
from harnesslab.rollout.env import Environment, Task, step_budget
from harnesslab.rollout.episode import Limits, Spend, play
from harnesslab.rollout.guard import GuardedEnv, deadline_of
from harnesslab.rollout.identity import concurrency_of
from harnesslab.rollout.records import Episode
from harnesslab.rollout.remote import RemoteJob, completions, submit


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to play. ``side`` says for whom (baseline, candidate, ...)."""

    side: str
    pipeline: Pipeline
    task: Task
    repeat: int = 0


Sink = Callable[[Job, Episode], bool]
"""Told of every finished episode, at once. Returns true to stop the rest: the verdict is settled."""


class Runner:
    """Plays jobs on one environment with one backbone."""

    def __init__(
        self,
        environment: Environment,
        backbone: MinimalBackbone,
        *,
        budget: int | None = None,
        workers: int | None = None,
        seed: int = 0,
        spend: Spend | None = None,
        executor: Executor | None = None,
        limits: Limits | None = None,
    ):
        """``limits``: deadlines, and the check before each call of the backbone. ``budget``: steps an episode, by default the environment's own. ``workers``: episodes at once,
        by default what the backbone asks for (a local model wants 1). ``executor``: where to play them, by default here."""
        self.environment = environment
        self.backbone = backbone
        self.budget = step_budget(environment) if budget is None else budget
        self.workers = max(1, workers if workers is not None else concurrency_of(backbone))
        self.seed = seed
        self._spend = spend
        self._executor = executor
        self._limits = limits if limits is not None else Limits()
        deadline_of(environment, self._limits.deadline)

    async def run(self, jobs: Iterable[Job], sink: Sink) -> None:
        """Play the jobs in order, ``workers`` at a time.

        Raises what the backbone or the sink raises; episodes handed to the sink before that are safe.
        When cancelled, the episodes in flight are dropped and all environments closed.
        """
        queue = iter(jobs)
        stop = asyncio.Event()
        work = self._work if self._executor is None else self._send
        workers = [asyncio.create_task(work(queue, sink, stop)) for _ in range(self.workers)]
        try:
            done, others = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            if others and any(isinstance(worker.exception(), BudgetExceeded) for worker in done):
                await asyncio.wait(others)  # they end at their next call; the calls in flight are paid for
            for worker in done:
                worker.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, queue: Iterator[Job], sink: Sink, stop: asyncio.Event) -> None:
        env: GuardedEnv | None = None
        try:
            for job in queue:
                if stop.is_set():
                    return
                try:
                    env = env or await GuardedEnv.make(self.environment, self._limits.deadline)
                except EnvironmentFault as fault:
                    episode = Episode.unscorable(job.task, job.repeat, self.budget, str(fault), fault.cause)
                else:
                    episode = await self._play(env, job)
                    if episode.status == "unscorable":
                        # An environment that broke is not used again.
                        await env.close()
                        env = None
                if sink(job, episode):
                    stop.set()
                # One turn of the loop between episodes, so that a cancellation can arrive.
                await asyncio.sleep(0)
        finally:
            if env is not None:
                await env.close()

    async def _send(self, queue: Iterator[Job], sink: Sink, stop: asyncio.Event) -> None:
        """The same, each episode on a worker of the executor."""
        assert self._executor is not None
        for job in queue:
            if stop.is_set():
                return
            harness = job.pipeline.harness
            remote = RemoteJob(
                self.environment,
                self.backbone,
                harness.files,
                harness.unconfined,
                job.task,
                job.repeat,
                self.budget,
                self.seed,
                self._limits.remote(),
            )
            # How many calls an episode takes is known when it is back; until then it counts as one.
            self._limits.allow(1)
            try:
                episode = await submit(self._executor, remote)
            finally:
                self._limits.release(1)
            if sink(job, episode):
                stop.set()
            if self._spend is not None:
                for completion in completions(episode):
                    self._spend(completion)

    async def _play(self, env: GuardedEnv, job: Job) -> Episode:
        return await play(
            env,
            job.task,
            job.pipeline,
            self.backbone,
            budget=self.budget,
            repeat=job.repeat,
            seed=self.seed,
            spend=self._spend,
            limits=self._limits,
        )
