"""How a run shows itself: a head line, and one row an episode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harnesslab.markup import table
from harnesslab.plaintext import clip, columns

if TYPE_CHECKING:
    from harnesslab.rollout.records import Episode, Run

ROWS = 20
"""Episodes that a run shows of itself; ``to_frame()`` has them all."""
EPISODE_COLUMNS = (
    "id", "task_id", "family", "repeat", "solved", "progress", "reward", "steps", "invalid", "prompt_tokens",
    "completion_tokens", "seconds", "status", "owner", "cause", "reason", "fired",
)  # fmt: skip
"""Columns of a DataFrame of episodes. ``seconds`` is wall time; ``fired`` maps interventions to steps."""
_HEAD = ("task", "family", "outcome", "progress", "steps", "invalid", "tokens", "how it ended")


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun if number == 1 else noun + 's'}"


def episode_row(episode: Episode) -> dict[str, Any]:
    """One episode as a row of :data:`EPISODE_COLUMNS`."""
    same = {name: getattr(episode, name) for name in EPISODE_COLUMNS if name not in ("steps", "fired")}
    return same | {"steps": episode.length, "fired": dict(episode.fired)}


def ended(episode: Episode) -> str:
    """How an episode ended; for a failure with its owner and cause in front."""
    return f"{episode.owner}, {episode.cause}: {episode.reason}" if episode.cause else episode.reason


def unscored(run: Run) -> str:
    """How many episodes could not be scored, and who owns that."""
    gone = [episode for episode in run.episodes if episode.status != "finished"]
    owners = Counter(f"{e.owner}, {e.cause}" if e.cause else e.owner for e in gone)
    parts = "; ".join(f"{owner}: {count}" for owner, count in owners.most_common())
    return f"{counted(len(gone), 'more episode')} could not be scored ({parts})"


def run_head(run: Run) -> str:
    """One line: what was played, with what, and how many tasks were solved."""
    played = len(run.scorable)
    repeats = f" ({counted(played, 'episode')})" if played > run.tasks else ""
    broken = f", {unscored(run)}" if len(run) > played else ""
    backbone = f" with {run.backbone}" if run.backbone else ""
    head = f"{run.split} run {run.id}{backbone}, harness {run.commit[:10]}"
    return f"{head}: {run.solved} of {counted(run.tasks, 'task')} solved{repeats}{broken}"


def run_text(run: Run) -> str:
    """The run in plain text."""
    return "\n".join([run_head(run), *columns([_HEAD, *map(_cells, run.episodes[:ROWS])]), *_rest(run)])


def run_html(run: Run) -> str:
    """The run as an HTML table, all text escaped."""
    return str(table(_HEAD, map(_cells, run.episodes[:ROWS]), caption=run_head(run), below=_rest(run)))


def episode_text(episode: Episode) -> str:
    """An episode as a transcript: what was seen, what was answered, what came of it."""
    lines = [f"task: {clip(episode.instruction, 200)}"]
    for step in episode.steps:
        lines += [
            f"{step.index + 1:>3}  sees    {clip(step.observation, 160)}",
            f"     answers {clip(step.raw, 120)}" + ("" if step.executed else "   [not executed]"),
        ]
    outcome = "solved" if episode.solved else "failed" if episode.status == "finished" else "unscorable"
    tokens = episode.prompt_tokens + episode.completion_tokens
    lines.append(f"{outcome}: {ended(episode)} ({episode.length} steps, {tokens} tokens, {episode.seconds:.1f} s)")
    return "\n".join(lines)


def _cells(episode: Episode) -> Sequence[str]:
    outcome = "solved" if episode.solved else "failed" if episode.status == "finished" else "unscorable"
    return (
        clip(episode.task_id, 40) + (f" #{episode.repeat}" if episode.repeat else ""),
        clip(episode.family, 24),
        outcome,
        f"{episode.progress:.0%}",
        str(episode.length),
        str(episode.invalid),
        str(episode.prompt_tokens + episode.completion_tokens),
        clip(ended(episode), 60),
    )


def _rest(run: Run) -> list[str]:
    return [f"... and {len(run) - ROWS} more episodes; .to_frame() has them all"] if len(run) > ROWS else []
