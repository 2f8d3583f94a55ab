"""The failed episodes of a run, each with its label, clustered by cause; shows itself in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnesslab.extras import comes_with
from harnesslab.markup import table
from harnesslab.plaintext import clip
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.taxonomy import LABELS, Diagnosis, Label, diagnose

if TYPE_CHECKING:
    import pandas as pd

    from harnesslab.trainer.desk import Desk


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed episode and what went wrong first in it."""

    episode: Episode
    diagnosis: Diagnosis

    @property
    def label(self) -> Label:
        """The earliest bottleneck."""
        return self.diagnosis.label


@dataclass(frozen=True, slots=True)
class Cluster:
    """Failures with the same label, cause and message pattern, in the order of the panel."""

    label: Label
    cause: str
    signature: str
    failures: tuple[Failure, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks behind the cluster, each once, in the order of the panel."""
        return tuple(dict.fromkeys(failure.episode.task_id for failure in self.failures))

    @property
    def title(self) -> str:
        """Cause and pattern in one line (untrusted text inside: escape it)."""
        return f"{self.cause}: {self.signature}" if self.signature else self.cause

    def __len__(self) -> int:
        return len(self.failures)


class Failures:
    """The diagnosis of a run: its failed episodes, typed and clustered.

    It carries the whole run, because what succeeded is evidence too. Episodes whose environment or backbone
    broke are left out and counted in ``unscorable``.
    """

    def __init__(self, run: Run):
        self.run = run
        self.items: tuple[Failure, ...] = tuple(Failure(episode, diagnose(episode)) for episode in run.failures())
        self.clusters: tuple[Cluster, ...] = _cluster(self.items)
        self.unscorable = len(run) - len(run.scorable)
        self.trainer: Desk[Any, Any] | None = None
        """Whose failures these are; set by :meth:`Trainer.diagnose`."""

    @property
    def episodes(self) -> list[Episode]:
        """The failed episodes, in the order of the panel."""
        return [failure.episode for failure in self.items]

    @property
    def solved(self) -> list[Episode]:
        """The episodes of the run that reached the goal: what a skill can be learned from."""
        return [episode for episode in self.run.scorable if episode.solved]

    def counts(self) -> dict[Label, int]:
        """How many failures each label has, all four labels, in the order in which they are checked."""
        return {label: sum(failure.label == label for failure in self.items) for label in LABELS}

    def of(self, label: Label) -> list[Failure]:
        """The failures with one label."""
        return [failure for failure in self.items if failure.label == label]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Failure]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Failure:
        return self.items[index]

    def to_frame(self) -> pd.DataFrame:
        """One row a failed episode: task, family, repeat, label, cause, step, reason, progress, invalid, steps."""
        with comes_with("lab"):
            import pandas as pd

        columns = ["task", "family", "repeat", "label", "cause", "signature", "step", "reason"]
        columns += ["progress", "invalid", "steps"]
        return pd.DataFrame([_row(failure) for failure in self.items], columns=columns)

    def head(self) -> str:
        """How many episodes failed, and how many could not be scored."""
        broken = f", {self.run.unscored()}" if self.unscorable else ""
        return f"{len(self.items)} of {len(self.run.scorable)} episodes failed{broken}"

    def __repr__(self) -> str:
        lines = [f"  {len(c):4d}  {c.label:24s} {clip(c.title)}  e.g. {_example(c)}" for c in self.clusters]
        return "\n".join([self.head(), *lines])

    def _repr_html_(self) -> str:
        rows = [(len(cluster), cluster.label, cluster.title, _example(cluster)) for cluster in self.clusters]
        return str(table(("episodes", "label", "cause", "first example"), rows, caption=self.head()))


def _cluster(items: tuple[Failure, ...]) -> tuple[Cluster, ...]:
    groups: dict[tuple[Label, str, str], list[Failure]] = {}
    for failure in items:
        diagnosis = failure.diagnosis
        groups.setdefault((diagnosis.label, diagnosis.cause, diagnosis.signature), []).append(failure)
    clusters = [Cluster(*key, tuple(failures)) for key, failures in groups.items()]
    return tuple(sorted(clusters, key=lambda c: (-len(c), LABELS.index(c.label), c.cause, c.signature)))


def _example(cluster: Cluster) -> str:
    failure = cluster.failures[0]
    return f"{clip(failure.episode.task_id, 40)}, step {failure.diagnosis.step}: {clip(failure.diagnosis.reason, 120)}"


def _row(failure: Failure) -> dict[str, object]:
    episode, diagnosis = failure.episode, failure.diagnosis
    return {
        "task": episode.task_id,
        "family": episode.family,
        "repeat": episode.repeat,
        "label": diagnosis.label,
        "cause": diagnosis.cause,
        "signature": diagnosis.signature,
        "step": diagnosis.step,
        "reason": diagnosis.reason,
        "progress": episode.progress,
        "invalid": episode.invalid,
        "steps": episode.length or len(episode.steps),
    }
