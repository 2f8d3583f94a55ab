"""The A/A probe: what the measurement itself does, before anything is spent on candidates."""

from __future__ import annotations

from dataclasses import dataclass

from harnesslab.plaintext import counted
from harnesslab.rollout.progress import Bar
from harnesslab.trainer.measure import Measurer
from harnesslab.trainer.pairs import changed_tasks, pair_up
from harnesslab.trainer.panel import Panel


@dataclass(frozen=True, slots=True)
class Probe:
    """The same harness, played twice on the gate.

    ``flips`` of ``tasks`` tasks changed by themselves, repeats counted by :data:`harnesslab.rollout.tasks.RULE`;
    ``minimum`` is the least net gain in tasks that the exact paired test at the 5% level finds with 80% power under that
    noise (``None``: none at all on a panel of this size). ``tokens`` and ``seconds`` are the cost of one run of the panel, of
    ``episodes`` episodes. ``replayed``: the second run came from a recording, so it shows the noise of the environment
    only, not that of the backbone.
    """

    tasks: int
    flips: int
    minimum: int | None
    tokens: int
    seconds: float
    replayed: bool
    episodes: int = 0

    @property
    def noise(self) -> float:
        """Share of tasks that flipped."""
        return self.flips / self.tasks if self.tasks else 0.0

    def __repr__(self) -> str:
        effect = "no gain at all" if self.minimum is None else f"a net gain of {counted(self.minimum, 'task')} or more"
        repeats = f" ({counted(self.episodes, 'episode')})" if self.episodes > self.tasks else ""
        lines = [
            f"A/A on {counted(self.tasks, 'task')}{repeats}: {self.flips} flipped without a change ({100 * self.noise:.1f}%)",
            f"this panel can show {effect} (5% level, 80% power)",
            f"one run costs {self.tokens} tokens and {self.seconds:.1f} s",
        ]
        if self.replayed:
            lines.append(
                "the replies were replayed from a recording: this number does not include the backbone's own noise"
            )
        return "\n".join(lines)


async def probe(measurer: Measurer, panel: Panel, commit: str, bar: Bar) -> Probe:
    """Measure the harness at ``commit`` twice on the panel, both times afresh; ``bar`` counts each of the two runs."""
    from harnesslab.analysis.statistics import minimum_gain

    first = await measurer.measure(commit, panel, bar, purpose="probe", fresh=True)
    second = await measurer.measure(commit, panel, bar, purpose="probe", fresh=True)
    pairs = [pair for pair in pair_up(first, second) if pair.scorable]
    tasks, flips = len({pair.task for pair in pairs}), sum(map(len, changed_tasks(pairs)))
    replies = [reply for episode in second for step in episode.steps for reply in step.replies]
    return Probe(
        tasks=tasks,
        flips=flips,
        minimum=minimum_gain(tasks, flips / tasks if tasks else 0.0),
        tokens=sum(episode.prompt_tokens + episode.completion_tokens for episode in second),
        seconds=sum(episode.seconds for episode in second),
        episodes=len(pairs),
        replayed=bool(replies) and all(reply["cached"] for reply in replies),
    )
