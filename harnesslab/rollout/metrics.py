"""The secondary metrics of a run, and which direction is better; one place for each rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harnesslab.rollout.records import Episode


@dataclass(frozen=True, slots=True)
class Metric:
    """A number per episode. ``sign`` is 1 where more is better, -1 where less is."""

    name: str
    of: Callable[[Episode], float]
    sign: int
    unit: str

    def mean(self, episodes: Sequence[Episode]) -> float:
        """The mean over episodes; 0.0 for none."""
        return sum(map(self.of, episodes)) / len(episodes) if episodes else 0.0


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("progress", lambda episode: episode.progress, 1, "share of subgoals"),
        Metric("invalid", lambda episode: float(episode.invalid), -1, "invalid actions an episode"),
        Metric("steps", lambda episode: float(episode.length), -1, "steps an episode"),
        Metric(
            "tokens",
            lambda episode: float(episode.prompt_tokens + episode.completion_tokens),
            -1,
            "tokens an episode",
        ),
    )
}
