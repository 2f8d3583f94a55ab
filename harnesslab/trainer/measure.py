"""Measures harness commits: plays what is missing, keeps each episode the moment it ends.

A run is found again by commit and measurement identity. What an interrupted kernel has already played is
not played a second time; what was unscorable is, unless its task was set aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from harnesslab.errors import UnmeasurableRun
from harnesslab.harness.load import Harness, load_harness
from harnesslab.harness.pipeline import Pipeline
from harnesslab.lab import Lab
from harnesslab.ledger import whoami
from harnesslab.llm.types import Completion, MinimalBackbone
from harnesslab.plaintext import counted
from harnesslab.rollout.deaf import world_for
from harnesslab.rollout.env import Environment, Task
from harnesslab.rollout.episode import Limits
from harnesslab.rollout.identity import digest, identity_of, measurement_identity
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.runner import Job, Runner
from harnesslab.store import identity_hash
from harnesslab.trainer.criterion import Criterion, decides, foregone, is_sequential
from harnesslab.trainer.mechanism import New, quiet
from harnesslab.trainer.pairs import Pair, comparable, pair_up, prefix, unplayed
from harnesslab.trainer.panel import Panel
from harnesslab.trainer.tolerance import DEFAULT, Triage

SCREEN = "screen"
"""The purpose of a run in which each task was played with another set of interventions."""
PROGRESS = "measure"
"""The key under which the sidebar finds what is being measured."""


@dataclass(slots=True)
class Measurer:
    """Plays panels for one lab with one backbone."""

    lab: Lab
    backbone: MinimalBackbone
    budget: int
    workers: int | None = None
    seed: int = 0
    spend: Callable[[Completion], None] | None = None
    executor: Executor | None = None
    environment: Environment | None = None
    """Another environment than the lab's own, for transfer."""
    base: Mapping[str, bytes] = field(default_factory=dict)
    """Files that are put over those of each harness, such as another environment's base prompt."""
    limits: Limits | None = None
    tolerance: float = DEFAULT
    """Unscorable episodes that a run may have; see :class:`~harnesslab.trainer.tolerance.Triage`."""
    leave_out: tuple[str, ...] = ()
    keep: Callable[[], None] = lambda: None
    """Called after each finished episode, for whatever else must be on disk by then."""

    @property
    def world(self) -> Environment:
        """The environment that is played."""
        return self.environment if self.environment is not None else self.lab.environment

    def record_opening(self, commit: str, panel: Panel) -> None:
        """Note in the lab that the sealed split is opened; other splits need no note."""
        if panel.split == "sealed":
            self.lab.record_opening(commit, identity_of(self.backbone), self.world, whoami(self.lab.path))

    def harness(self, commit: str) -> Harness:
        """The harness at ``commit`` as it is played."""
        if not self.base:
            return self.lab.harness(commit)
        return load_harness({**self.lab.repo.files(commit), **self.base}, unconfined=self.lab.unconfined)

    def identity(self, panel: Panel) -> dict[str, Any]:
        """The identity of a measurement on the panel; see :mod:`harnesslab.rollout.identity`."""
        base = {path: data.decode("utf-8", "replace") for path, data in self.base.items()}
        return measurement_identity(
            self.world,
            panel.tasks,
            self.backbone,
            budget=self.budget,
            repeats=panel.repeats,
            seed=self.seed,
            tolerance=None if self.tolerance == DEFAULT else self.tolerance,
            leave_out=self.leave_out,
            first=panel.first,
        ) | ({"base": digest(base)} if base else {})

    def runner(self) -> Runner:
        """A runner with this measurer's budget, workers and seed."""
        return Runner(
            world_for(self.world, self.backbone),
            self.backbone,
            budget=self.budget,
            workers=self.workers,
            seed=self.seed,
            spend=self.spend,
            executor=self.executor,
            limits=self.limits,
        )

    def open_run(
        self, commit: str, panel: Panel, purpose: str, *, fresh: bool = False, mixed: Mapping[str, Any] | None = None
    ) -> Run:
        """The stored run of this very measurement with what it holds already, or a new empty one.

        ``mixed``: what was put on top of the commit where, for a run that plays more than one harness; part of its identity.
        """
        identity = self.identity(panel) | ({"mixed": digest(mixed)} if mixed is not None else {})
        found = None if fresh else self.lab.runs.find_run(commit, identity_hash(identity), split=panel.split)
        if found is not None:
            return self.lab.load_run(found)
        name = identity["backbone"]["model"]
        run_id = self.lab.runs.begin_run(
            commit, identity, split=panel.split, purpose=purpose, backbone=name, meta=mixed
        )
        return Run(run_id, commit, panel.split, identity, purpose=purpose, backbone=name)

    async def watch(self, harness: Harness, task: Task) -> Episode:
        """Play one task; nothing is stored."""
        found: list[Episode] = []

        def sink(job: Job, episode: Episode) -> bool:
            found.append(episode)
            return False

        await self.runner().run([Job("baseline", Pipeline(harness), task)], sink)
        return found[0]

    async def measure(
        self, commit: str, panel: Panel, bar: Bar, *, purpose: str = "measure", fresh: bool = False
    ) -> Run:
        """Play the panel with the harness at ``commit``; returns the complete run."""
        run = self.open_run(commit, panel, purpose, fresh=fresh)
        await self._play({"baseline": run}, panel, bar, lambda: False)
        return run

    async def measure_mixed(
        self,
        commit: str,
        panel: Panel,
        bar: Bar,
        pipelines: Mapping[str, Pipeline],
        mixed: Mapping[str, Any],
        *,
        purpose: str = SCREEN,
    ) -> Run:
        """Play the panel with a harness of its own on each task (``pipelines``, by task id), as one run of the ``commit``.

        ``mixed`` says what they were, in plain JSON; it is kept with the run.
        """
        run = self.open_run(commit, panel, purpose, mixed=mixed)
        await self._play({"baseline": run}, panel, bar, lambda: False, pipelines)
        return run

    async def compare(
        self,
        baseline: str,
        candidate: str,
        panel: Panel,
        bar: Bar,
        criterion: Criterion,
        earlier: Sequence[Pair] = (),
        new: New = None,
    ) -> tuple[Run, Run, bool]:
        """Play both harnesses on the same tasks, interleaved; stop as soon as nothing can change the verdict any more.

        ``earlier`` are pairs of the same two from other looks, which count as well. ``new``: what the candidate changed; one of
        which nothing ever fires is stopped, too. Returns both runs and whether the
        candidate was stopped early.
        """
        before = self.open_run(baseline, panel, "gate")
        after = self.open_run(candidate, panel, "candidate")

        def settled() -> bool:
            if len(after.episodes) == len(panel):
                return False
            first = prefix(panel.keys, before, after)
            if quiet(first, new):
                return True
            if is_sequential(criterion):
                return decides(criterion, [*earlier, *first])
            left = unplayed(before, after)
            whole = len(before.episodes) == len(panel)
            played = [*earlier, *comparable(pair_up(before, after))]
            return whole and bool(left) and foregone(criterion, played, left) is not None

        early = await self._play({"baseline": before, "candidate": after}, panel, bar, settled)
        if before.served != after.served and before.served and after.served:
            raise UnmeasurableRun(
                f"the server answered as {', '.join(before.served)} for the baseline and as {', '.join(after.served)} "
                "for the candidate: pin one model, and measure the baseline again with trainer.measure(fresh=True)"
            )
        return before, after, early

    async def _play(
        self,
        runs: dict[str, Run],
        panel: Panel,
        bar: Bar,
        settled: Callable[[], bool],
        mixed: Mapping[str, Pipeline] | None = None,
    ) -> bool:
        triage = Triage(runs, len(panel), self.tolerance)
        own = {} if mixed is not None else {side: Pipeline(self.harness(run.commit)) for side, run in runs.items()}

        def pipeline(side: str, task: Task) -> Pipeline:
            return mixed[task.id] if mixed is not None else own[side]

        jobs = self._jobs(runs, panel, triage, pipeline)
        bar.total, bar.done = len(panel) * len(runs), len(panel) * len(runs) - len(jobs)
        bar.restart()
        early = settled()
        if jobs and not early:
            # At once, so that whoever watches sees a slow first episode, too.
            self.lab.runs.set_progress(PROGRESS, bar.label, bar.done, bar.total)
            try:
                while jobs and not early:
                    early = await self._round(jobs, runs, triage, bar, settled)
                    jobs = self._jobs(runs, panel, triage, pipeline)
            finally:
                self.lab.runs.clear_progress(PROGRESS)
        for episode in triage.settle():
            self.lab.keep_episode(runs["candidate"], self.lab.load_steps(episode))
        order = {key: place for place, key in enumerate(panel.keys)}
        for run in runs.values():
            run.episodes.sort(key=lambda episode: order[episode.key])
            complete = len(run.episodes) == len(panel)
            run.served = _served(run)
            self.lab.runs.finish_run(
                run.id, status="done" if complete else "stopped", meta={"served": list(run.served)}
            )
        for side, run in runs.items():
            triage.check(side, run)
        return early

    async def _round(
        self, jobs: list[Job], runs: dict[str, Run], triage: Triage, bar: Bar, settled: Callable[[], bool]
    ) -> bool:
        """Play the jobs, each at most once; returns whether the verdict is settled."""
        early = False
        calm = {side: not triage.doubtful(run) for side, run in runs.items()}

        def keep(job: Job, episode: Episode) -> None:
            run = runs[job.side]
            self.lab.keep_episode(run, episode)
            self.keep()
            run.episodes = [kept for kept in run.episodes if kept.key != episode.key] + [episode]

        def sink(job: Job, episode: Episode) -> bool:
            nonlocal early
            run, again = runs[job.side], triage.played(job) > 0
            try:
                triage.judge(job, episode)
            finally:
                keep(job, episode)
            if not again:
                bar.advance(f"{job.side}: {run.solved} of {counted(run.tasks, 'task')} solved")
            self.lab.runs.set_progress(PROGRESS, bar.label, bar.done, bar.total, {"note": bar.note, "run": run.id})
            triage.check(job.side, run)
            early = early or settled()
            # Too many broke: those are played once more before anything else is.
            return early or (calm[job.side] and triage.doubtful(run))

        def open_jobs() -> Iterator[Job]:
            for job in jobs:
                aside = triage.aside(job)
                if aside is None:
                    yield job
                else:
                    # Set aside for the baseline meanwhile: the same for the candidate, unplayed.
                    copy = Episode.unscorable(job.task, job.repeat, self.budget, aside.reason, aside.cause)
                    keep(job, copy)
                    bar.advance(bar.note)

        await self.runner().run(open_jobs(), sink)
        return early

    def _jobs(
        self, runs: dict[str, Run], panel: Panel, triage: Triage, pipeline: Callable[[str, Task], Pipeline]
    ) -> list[Job]:
        """What is still to play, task by task, the sides of one task beside each other; what broke comes first."""
        have = {
            side: {e.key for e in run.episodes if e.status == "finished" or triage.is_aside(run, e)}
            for side, run in runs.items()
        }
        jobs = [
            Job(side, pipeline(side, task), task, repeat)
            for task in panel.tasks
            for repeat in panel.numbers
            for side in runs
            if (task.id, repeat) not in have[side]
        ]
        # A candidate's task that is set aside already still needs its record.
        return sorted(
            (job for job in jobs if triage.left(job) or triage.aside(job) is not None),
            key=lambda job: -triage.played(job),
        )


def _served(run: Run) -> tuple[str, ...]:
    """The models that answered, of this call's episodes and of those that were stored before."""
    fresh = {reply["model"] for episode in run for step in episode.steps for reply in step.replies}
    return tuple(sorted({*run.served, *fresh} - {""}))
