"""DataFrames from what a lab has stored: episodes, steps, candidates, the learning curve, flips (extra ``lab``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from harnesslab.extras import comes_with
from harnesslab.ledger import DECIDED, Verdict, read_verdict, solved_counts, who_decided
from harnesslab.rollout.records import EPISODE_COLUMNS, Episode
from harnesslab.rollout.taxonomy import action_text
from harnesslab.store import Candidate, LabRepo, RunStore

if TYPE_CHECKING:
    import pandas as pd

CANDIDATES = 100_000
"""Candidates that a frame holds at most: more than any lab will see."""

STEP_COLUMNS = (
    "task_id", "repeat", "step", "observation", "raw", "action", "executed", "invalid", "result", "reward", "fired",
    "choices", "samples", "prompt_tokens", "completion_tokens", "seconds",
)  # fmt: skip
CURVE_COLUMNS = (
    "epoch", "candidate", "what", "verdict", "baseline", "solved", "tasks", "gain", "decided by", "override", "when",
)  # fmt: skip


def stored_episodes(runs: RunStore, run_id: str) -> pd.DataFrame:
    """One row an episode of a stored run, as ``Run.to_frame()`` gives, but read by columns and without traces."""
    with comes_with("lab"):
        import pandas as pd

    columns = runs.episode_columns(run_id)
    for name in ("reason", "cause"):
        columns[name] = [extra.get(name, "") for extra in columns["extra"]]
    return pd.DataFrame({name: columns[name] for name in EPISODE_COLUMNS})


def steps(run: Iterable[Episode]) -> pd.DataFrame:
    """One row a step of episodes whose steps are loaded (``lab.run(id)`` or ``lab.load_steps(episode)``)."""
    with comes_with("lab"):
        import pandas as pd

    rows = []
    for episode in run:
        for step in episode.steps:
            row = {
                "task_id": episode.task_id,
                "repeat": episode.repeat,
                "step": step.index,
                "action": action_text(step.action),
                "fired": ", ".join(step.fired),
                "samples": len(step.replies),
                "prompt_tokens": sum(reply.get("prompt_tokens") or 0 for reply in step.replies),
                "completion_tokens": sum(reply.get("completion_tokens") or 0 for reply in step.replies),
            }
            same = ("observation", "raw", "executed", "invalid", "result", "reward", "choices", "seconds")
            rows.append(row | {name: getattr(step, name) for name in same})
    return pd.DataFrame(rows, columns=list(STEP_COLUMNS))


def fired(run: Iterable[Episode]) -> pd.DataFrame:
    """One row an intervention: in how many episodes and steps it fired, and how many of those episodes were solved."""
    with comes_with("lab"):
        import pandas as pd

    counts: dict[str, dict[str, Any]] = {}
    for episode in run:
        for name, times in episode.fired.items():
            row = counts.setdefault(name, {"intervention": name, "episodes": 0, "steps": 0, "solved": 0})
            row["episodes"] += 1
            row["steps"] += times
            row["solved"] += episode.solved
    frame = pd.DataFrame(list(counts.values()), columns=["intervention", "episodes", "steps", "solved"])
    return frame.sort_values(["episodes", "intervention"], ascending=[False, True], ignore_index=True)


def candidates(repo: LabRepo) -> pd.DataFrame:
    """One row a candidate, newest first: id, state, what, layer, kind, estimator, reason, who decided, delta, times (UTC)."""
    with comes_with("lab"):
        import pandas as pd

    names = (
        "id",
        "state",
        "subject",
        "layer",
        "kind",
        "estimator",
        "reason",
        "decided_by",
        "delta",
        "created",
        "decided_at",
    )
    rows = [{name: getattr(row, name) for name in names} | {"decided_by": _decider(row)} for row in _all(repo)]
    frame = pd.DataFrame(rows, columns=list(names))
    for name in ("created", "decided_at"):
        frame[name] = pd.to_datetime(frame[name].astype("float64"), unit="s", utc=True)
    return frame


def curve_rows(repo: LabRepo) -> list[dict[str, Any]]:
    """The learning curve as plain rows (:data:`CURVE_COLUMNS`): one a verdict, oldest first.

    ``epoch`` counts the verdicts from 1. ``baseline`` and ``solved`` are tasks solved before and with the candidate, of
    ``tasks``; None for a candidate that a person judged without a measurement.
    """
    judged = [row for row in _all(repo) if row.state in DECIDED and row.verdict]
    judged.sort(key=lambda row: (row.decided_at or row.created, row.id))
    return [_curve_row(epoch, row) for epoch, row in enumerate(judged, 1)]


def curve(repo: LabRepo) -> pd.DataFrame:
    """:func:`curve_rows` as a DataFrame, times as UTC timestamps."""
    with comes_with("lab"):
        import pandas as pd

    frame = pd.DataFrame(curve_rows(repo), columns=list(CURVE_COLUMNS))
    frame["when"] = pd.to_datetime(frame["when"].astype("float64"), unit="s", utc=True)
    return frame


def flips(verdict: Verdict | Mapping[str, Any]) -> pd.DataFrame:
    """One row a task whose outcome changed, from a verdict or its JSON: task, before, after, incidental."""
    with comes_with("lab"):
        import pandas as pd

    read = read_verdict(verdict)
    rows = [asdict(flip) for flip in read.flips] if read is not None else []
    return pd.DataFrame(rows, columns=["task", "before", "after", "incidental"])


def _decider(row: Candidate) -> str | None:
    decider = who_decided(row.verdict)
    return decider.kind if decider is not None else None


def _all(repo: LabRepo) -> Sequence[Candidate]:
    return repo.candidates(limit=CANDIDATES).rows


def _curve_row(epoch: int, row: Candidate) -> dict[str, Any]:
    decider = who_decided(row.verdict)
    before, after, tasks = solved_counts(row.verdict) or (None, None, None)
    return {
        "epoch": epoch,
        "candidate": row.id,
        "what": row.subject,
        "verdict": row.state,
        "baseline": before,
        "solved": after,
        "tasks": tasks,
        "gain": after - before if before is not None and after is not None else None,
        "decided by": decider.name if decider else "",
        "override": decider is not None and decider.override,
        "when": row.decided_at,
    }
