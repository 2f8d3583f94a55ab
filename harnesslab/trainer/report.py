"""Result rows with everything that an honest table needs: counts, interval, floor, control, freedom of choice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harnesslab.lab import Lab
from harnesslab.plaintext import clip, counted
from harnesslab.rollout.floors import Floors
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.tasks import solved_shares


def result_row(lab: Lab, run: Run, *, harness: str) -> dict[str, Any]:
    """One run as a row. ``solved`` and ``of`` count tasks, ``rate`` is the mean share of a task's repeats that were solved.

    ``rate`` and its 95% interval (``low``, ``high``), in which the repeats of a task are one cluster, are percentages.

    ``forced`` is the percentage of executed actions that the harness decided (:mod:`harnesslab.rollout.own`); at 100
    the harness plays alone.
    """
    from harnesslab.analysis.statistics import clustered

    scorable = run.scorable
    shares = solved_shares(scorable)
    low, high = clustered(list(shares.values()), len(scorable))
    return {
        "harness": harness,
        "backbone": run.backbone,
        "solved": run.solved,
        "of": run.tasks,
        "rate": round(100 * run.rate, 1),
        "low": round(100 * low, 1),
        "high": round(100 * high, 1),
        "invalid": round(sum(episode.invalid for episode in scorable) / max(1, len(scorable)), 2),
        "steps": round(sum(episode.length for episode in scorable) / max(1, len(scorable)), 1),
        "forced": round(100 * forced_share(lab.load_steps(episode) for episode in scorable), 1),
        "unscorable": len(run) - len(scorable),
    }


def wilson_percent(solved: int, tasks: int) -> tuple[float, float]:
    """The 95% interval of a share of tasks, in percent."""
    from harnesslab.analysis.statistics import wilson

    low, high = wilson(solved, tasks)
    return round(100 * low, 1), round(100 * high, 1)


def forced_share(episodes: Iterable[Episode]) -> float:
    """Share of executed actions that are not the model's own; 0.0 when nothing was executed.

    Older records say only how many choices were left.
    """
    forced = total = 0
    for episode in episodes:
        done = [step for step in episode.steps if step.executed]
        total += len(done)
        forced += sum(step.choices == 1 if step.forced is None else step.forced for step in done)
    return forced / total if total else 0.0


def floor_rows(floors: Floors) -> list[dict[str, Any]]:
    """The agents without a mind and the oracle as rows beside the others; without those that there are not."""
    return [
        {"harness": "none", "backbone": name, "solved": count, "of": floors.tasks, "rate": round(100 * count / floors.tasks, 1)}
        for name, count in floors.rows()
    ]  # fmt: skip


def constant_note(floors: Floors) -> str:
    """What the constant answer is and how it was chosen; empty where there is none."""
    if floors.answer is None:
        return ""
    answer = floors.answer
    how = f", which solved {answer.solved} of {counted(answer.tasks, 'search task')}" if answer.tasks else ""
    return f"constant: always {clip(str(answer), 50)}{how}"
