"""The A/A probe: what the measurement itself does, before anything is spent on candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harnesslab.trainer.pairs import pair_up

if TYPE_CHECKING:
    from harnesslab.rollout.progress import Bar
    from harnesslab.trainer.trainer import Trainer


@dataclass(frozen=True, slots=True)
class Probe:
    """The same harness, played twice on the gate.

    ``flips`` of ``tasks`` pairs changed by themselves; ``minimum`` is the least net gain (tasks) that a paired test
    at the 5 % level finds with 80 % power under that noise (``None``: none at all on a panel of this size).
    ``tokens`` and ``seconds`` are what one run of the panel costs. ``replayed``: the second run came from a
    recording, so it shows the noise of the environment only, not that of the backbone.
    """

    tasks: int
    flips: int
    minimum: int | None
    tokens: int
    seconds: float
    replayed: bool

    @property
    def noise(self) -> float:
        """Share of pairs that flipped."""
        return self.flips / self.tasks if self.tasks else 0.0

    def __repr__(self) -> str:
        effect = "no gain at all" if self.minimum is None else f"a net gain of {self.minimum} or more"
        lines = [
            f"A/A on {self.tasks} episodes: {self.flips} flipped by themselves ({100 * self.noise:.1f} %)",
            f"this panel can show {effect} (5 % level, 80 % power)",
            f"one run costs {self.tokens} tokens and {self.seconds:.1f} s",
        ]
        if self.replayed:
            lines.append("the replies were replayed from a recording: the backbone's own noise is not in this number")
        return "\n".join(lines)


async def probe(trainer: Trainer, bar: Bar) -> Probe:
    """Measure the baseline twice on the gate, both times anew; ``bar`` counts each of the two runs."""
    from harnesslab.analysis.statistics import minimum_gain

    panel, commit = trainer.panel("gate"), trainer.lab.repo.baseline()
    measurer = trainer.measurer()
    first = await measurer.measure(commit, panel, bar, purpose="probe", fresh=True)
    second = await measurer.measure(commit, panel, bar, purpose="probe", fresh=True)
    pairs = [pair for pair in pair_up(first, second) if pair.scorable]
    flips = sum(pair.before.solved != pair.after.solved for pair in pairs)
    replies = [reply for episode in second for step in episode.steps for reply in step.replies]
    return Probe(
        tasks=len(pairs),
        flips=flips,
        minimum=minimum_gain(len(pairs), flips / len(pairs) if pairs else 0.0),
        tokens=sum(episode.prompt_tokens + episode.completion_tokens for episode in second),
        seconds=sum(episode.seconds for episode in second),
        replayed=bool(replies) and all(reply["cached"] for reply in replies),
    )
