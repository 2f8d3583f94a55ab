"""Measures harness commits: plays what is missing, keeps each episode the moment it ends.

A run is found again by commit and measurement identity. What an interrupted kernel has already played is
not played a second time; what was unscorable is, unless its task was set aside.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from harnesslab.errors import ConfigError, UnmeasurableRun
from harnesslab.harness.load import Harness, load_harness
from harnesslab.harness.pipeline import Pipeline
from harnesslab.lab import Lab
from harnesslab.ledger import whoami
from harnesslab.llm.types import Completion, MinimalBackbone
from harnesslab.plaintext import counted
from harnesslab.rollout.deaf import world_for
from harnesslab.rollout.env import SPLITS, Environment, Split, Task, tasks_of
from harnesslab.rollout.episode import Limits
from harnesslab.rollout.identity import digest, identity_of, measurement_identity
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.runner import Job, Runner
from harnesslab.store import identity_hash
from harnesslab.trainer.criterion import Criterion, decides, foregone, is_sequential
from harnesslab.trainer.pairs import Pair, comparable, pair_up, prefix, unplayed
from harnesslab.trainer.tolerance import DEFAULT, Triage

PROGRESS = "measure"
"""The key under which the sidebar finds what is being measured."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The tasks that are played, in order, how often each, and the number of the first repeat: another one is another draw."""

    split: Split
    tasks: tuple[Task, ...]
    repeats: int = 1
    first: int = 0

    @property
    def keys(self) -> list[tuple[str, int]]:
        """(task id, repeat) of each episode, repeats of a task beside each other."""
        return [(task.id, repeat) for task in self.tasks for repeat in self.numbers]

    @property
    def numbers(self) -> range:
        """The numbers of the repeats."""
        return range(self.first, self.first + self.repeats)

    def __len__(self) -> int:
        return len(self.tasks) * self.repeats


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
        return load_harness({**self.lab.repo.files(commit), **self.base}, trust=self.lab.trust)

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

    def open_run(self, commit: str, panel: Panel, purpose: str, *, fresh: bool = False) -> Run:
        """The stored run of this very measurement with what it holds already, or a new empty one."""
        identity = self.identity(panel)
        found = None if fresh else self.lab.runs.find_run(commit, identity_hash(identity), split=panel.split)
        if found is not None:
            return self.lab.load_run(found)
        name = identity["backbone"]["model"]
        run_id = self.lab.runs.begin_run(commit, identity, split=panel.split, purpose=purpose, backbone=name)
        return Run(run_id, commit, panel.split, identity, purpose=purpose, backbone=name)

    async def measure(
        self, commit: str, panel: Panel, bar: Bar, *, purpose: str = "measure", fresh: bool = False
    ) -> Run:
        """Play the panel with the harness at ``commit``; returns the complete run."""
        run = self.open_run(commit, panel, purpose, fresh=fresh)
        await self._play({"baseline": run}, panel, bar, lambda: False)
        return run

    async def compare(
        self,
        baseline: str,
        candidate: str,
        panel: Panel,
        bar: Bar,
        criterion: Criterion,
        earlier: Sequence[Pair] = (),
    ) -> tuple[Run, Run, bool]:
        """Play both harnesses on the same tasks, interleaved; stop as soon as nothing can change the verdict any more.

        ``earlier`` are pairs of the same two from other looks, which count as well. Returns both runs and whether the
        candidate was stopped early.
        """
        before = self.open_run(baseline, panel, "gate")
        after = self.open_run(candidate, panel, "candidate")

        def settled() -> bool:
            if is_sequential(criterion):
                return decides(criterion, [*earlier, *prefix(panel.keys, before, after)])
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

    async def _play(self, runs: dict[str, Run], panel: Panel, bar: Bar, settled: Callable[[], bool]) -> bool:
        triage = Triage(runs, len(panel), self.tolerance)
        jobs = self._jobs(runs, panel, triage)
        bar.total, bar.done = len(panel) * len(runs), len(panel) * len(runs) - len(jobs)
        bar.restart()
        early = settled()
        if jobs and not early:
            # At once, so that whoever watches sees a slow first episode, too.
            self.lab.runs.set_progress(PROGRESS, bar.label, bar.done, bar.total)
            try:
                while jobs and not early:
                    early = await self._round(jobs, runs, triage, bar, settled)
                    jobs = self._jobs(runs, panel, triage)
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

    def _jobs(self, runs: dict[str, Run], panel: Panel, triage: Triage) -> list[Job]:
        """What is still to play, task by task, the sides of one task beside each other; what broke comes first."""
        pipelines = {side: Pipeline(self.harness(run.commit)) for side, run in runs.items()}
        have = {
            side: {e.key for e in run.episodes if e.status == "finished" or triage.is_aside(run, e)}
            for side, run in runs.items()
        }
        jobs = [
            Job(side, pipelines[side], task, repeat)
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


def check_ids(environment: Environment, ids: Sequence[str]) -> None:
    """Raise ConfigError for a task to leave out that the environment does not have in any split."""
    if not ids:
        return
    known = [task.id for split in SPLITS for task in tasks_of(environment, split)]
    for unknown in sorted(set(ids) - set(known)):
        close = difflib.get_close_matches(unknown, known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else f"; its {len(known)} tasks begin with {known[:3]}"
        raise ConfigError(f"settings: key 'leave_out': '{environment.name}' has no task {unknown!r}{meant}")


def choose_panel(
    tasks: Sequence[Task],
    split: Split,
    *,
    limit: int | None = None,
    families: Sequence[str] | None = None,
    repeats: int = 1,
) -> Panel:
    """A panel of the first ``limit`` tasks, spread evenly over the families in turn, so that each is there.

    Raises ConfigError for an unknown family or an empty panel.
    """
    known = sorted({task.family for task in tasks})
    unknown = sorted(set(families or ()) - set(known))
    if unknown:
        raise ConfigError(f"the {split} split has no family {unknown[0]!r}; it has {', '.join(known)}")
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        if families is None or task.family in families:
            groups.setdefault(task.family, []).append(task)
    dealt = [task for row in _rounds(list(groups.values())) for task in row]
    chosen = tuple(dealt if limit is None else dealt[:limit])
    if not chosen:
        raise ConfigError(f"the {split} split has no task to play")
    return Panel(split, chosen, repeats)


def _rounds(groups: list[list[Task]]) -> list[list[Task]]:
    longest = max((len(group) for group in groups), default=0)
    return [[group[place] for group in groups if place < len(group)] for place in range(longest)]
