"""Episodes on other workers: any ``concurrent.futures.Executor``, such as a process pool or dask's.

A worker gets all that an episode needs as one picklable job and gives back the record as plain JSON. Nothing of
ours schedules machines: how many episodes are under way at once is the runner's ``workers``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor, Executor
from dataclasses import dataclass, field
from typing import Any

from harnesslab.errors import EnvironmentFault, ExecutorBroken
from harnesslab.harness.load import load_harness
from harnesslab.harness.pipeline import Pipeline
from harnesslab.llm.types import Completion, MinimalBackbone
from harnesslab.rollout.env import Environment, Task
from harnesslab.rollout.episode import Limits, play
from harnesslab.rollout.guard import GuardedEnv
from harnesslab.rollout.records import Episode, Step


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """One episode for a worker. ``environment`` and ``backbone`` must pickle; keys of endpoints do not travel."""

    environment: Environment
    backbone: MinimalBackbone
    files: Mapping[str, bytes]
    unconfined: bool
    task: Task
    repeat: int
    budget: int
    seed: int
    limits: Limits = field(default_factory=Limits)


def play_job(job: RemoteJob) -> dict[str, Any]:
    """Play the job here, on the worker; returns the episode as plain JSON.

    Raises BackboneError as :func:`harnesslab.rollout.episode.play` does.
    """
    episode = asyncio.run(_play(job))
    return {"summary": episode.summary(), "steps": [step.to_json() for step in episode.steps]}


async def _play(job: RemoteJob) -> Episode:
    pipeline = Pipeline(load_harness(job.files, unconfined=job.unconfined))
    env = await GuardedEnv.make(job.environment, job.limits.deadline)
    try:
        return await play(
            env, job.task, pipeline, job.backbone,
            budget=job.budget, repeat=job.repeat, seed=job.seed, limits=job.limits,
        )  # fmt: skip
    finally:
        await env.close()


async def submit(executor: Executor, job: RemoteJob) -> Episode:
    """Have a worker play the job. An environment that cannot be made there costs the episode.

    Raises ExecutorBroken when a worker died; the episodes that came back before are kept.
    """
    try:
        done = await asyncio.wrap_future(executor.submit(play_job, job))
    except EnvironmentFault as fault:
        return Episode.unscorable(job.task, job.repeat, job.budget, str(fault), fault.cause)
    except BrokenExecutor as error:
        raise ExecutorBroken(
            f"a worker of {type(executor).__name__} died while task {job.task.id} was played: {str(error).rstrip('.')}. Finished episodes "
            "are kept; create a new executor and measure again"
        ) from error
    return Episode.from_summary(done["summary"], [Step.from_json(step) for step in done["steps"]])


def completions(episode: Episode) -> list[Completion]:
    """The replies of an episode that came back from a worker, for the meter."""
    return [
        Completion(
            text="",
            prompt_tokens=reply["prompt_tokens"],
            completion_tokens=reply["completion_tokens"],
            model=reply["model"],
            seconds=reply["seconds"],
            cached=reply["cached"],
        )
        for step in episode.steps
        for reply in step.replies
    ]
