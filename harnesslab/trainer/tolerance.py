"""What a measurement does about episodes that broke: play them once more, set tasks aside, stop when it is too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from harnesslab.errors import BackboneError, UnmeasurableRun
from harnesslab.rollout.owners import CHARGED, IN_A_ROW, TRIES
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.runner import Job

DEFAULT = 0.5
"""Share of a run's episodes that may be unscorable."""
NAMED = 5
"""Tasks that an error names."""


class Triage:
    """Follows the episodes of one measurement and says what becomes of those that broke.

    ``runs`` by side; the side ``candidate`` is compared with the side ``baseline``.
    """

    def __init__(self, runs: Mapping[str, Run], total: int, tolerance: float = DEFAULT):
        """``total``: episodes of a complete run. ``tolerance``: how many may be unscorable; below 1 a share of them."""
        self._runs = runs
        self.limit = int(tolerance * total) if isinstance(tolerance, float) else tolerance
        self._tries: Counter[tuple[str, tuple[str, int]]] = Counter()
        self._silent = self._broken = 0
        self._total = total
        self._answered = any(run.scorable for run in runs.values())

    def judge(self, job: Job, episode: Episode) -> None:
        """Decide who owns an episode that broke. Raises BackboneError when the backbone is not worth asking further."""
        key = (job.side, episode.key)
        self._tries[key] += 1
        if episode.status == "finished":
            self._silent, self._answered = 0, True
            return
        baseline = self._runs.get("baseline") if job.side == "candidate" else None
        if episode.cause in CHARGED and baseline is not None and _scorable(baseline, episode.key):
            episode.fail(CHARGED[episode.cause], episode.reason)
            return
        self._count(episode)
        if episode.owner == "environment" and self._tries[key] >= TRIES and job.side != "candidate":
            episode.fail("unplayable", f"{episode.reason} (tried {TRIES} times)")

    def settle(self) -> list[Episode]:
        """Charge the candidate with requests that were refused before the baseline's side was known; returns those."""
        changed = []
        for episode in self._runs["candidate"].episodes if "candidate" in self._runs else ():
            if episode.set_aside and episode.cause in CHARGED and _scorable(self._runs["baseline"], episode.key):
                episode.fail(CHARGED[episode.cause], episode.reason)
                changed.append(episode)
        return changed

    def _count(self, episode: Episode) -> None:
        """Several in a row, and it is not the task: it is the endpoint, or the environment as a whole."""
        if episode.owner == "environment":
            self._silent = 0
            self._broken += not self._answered
            if self._broken >= IN_A_ROW and self.limit < self._total:
                raise UnmeasurableRun(
                    f"the environment broke in the first {IN_A_ROW} episodes, the last one because {episode.reason}. "
                    "Fix it, then measure again or call trainer.resume()"
                )
            return
        if episode.owner == "backbone" or not self._answered:
            self._silent += 1
        if self._silent >= IN_A_ROW:
            raise BackboneError(
                f"{IN_A_ROW} episodes in a row got no reply, the last one because {episode.reason}. Finished episodes are "
                "kept; fix the endpoint, then measure again or call trainer.resume()",
                cause=episode.cause,
            )

    def left(self, job: Job) -> bool:
        """Whether the job may still be played in this measurement: not twice in vain, and not on a task set aside."""
        return self._tries[job.side, (job.task.id, job.repeat)] < TRIES and self.aside(job) is None

    def aside(self, job: Job) -> Episode | None:
        """The episode by which the job's task was set aside, on its own side or on the baseline's."""
        for side in (job.side, "baseline"):
            for episode in self._runs[side].episodes if side in self._runs else ():
                if episode.key == (job.task.id, job.repeat) and self.is_aside(self._runs[side], episode):
                    return episode
        return None

    @staticmethod
    def is_aside(run: Run, episode: Episode) -> bool:
        """Whether the episode sets its task aside. Where nothing at all was scorable, it is not the tasks."""
        return episode.set_aside and bool(run.scorable)

    def played(self, job: Job) -> int:
        """How often the job was played in this measurement."""
        return self._tries[job.side, (job.task.id, job.repeat)]

    def doubtful(self, run: Run) -> bool:
        """Whether too many of a run's episodes broke up to now, those that may be played once more included."""
        return len(run) - len(run.scorable) > self.limit

    def check(self, side: str, run: Run) -> None:
        """Raise UnmeasurableRun when too many episodes broke for good."""
        broken = [e for e in run.episodes if e.status != "finished"]
        gone = [e for e in broken if self.is_aside(run, e) or self._tries[side, e.key] >= TRIES]
        if len(gone) <= self.limit:
            return
        names = list(dict.fromkeys(episode.task_id for episode in gone))
        shown = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
        raise UnmeasurableRun(
            f"{len(gone)} of {len(run)} episodes are unscorable, more than the {self.limit} that the tolerance allows "
            f"({shown}); the last one: {gone[-1].owner}, {gone[-1].cause}: {gone[-1].reason}. Fix the cause, or pass "
            f"settings={{'leave_out': [{names[0]!r}, ...]}} or a higher 'tolerance'"
        )


def _scorable(run: Run, key: tuple[str, int]) -> bool:
    return any(episode.key == key and episode.status == "finished" for episode in run.episodes)
