"""What an episode has cost up to now: the basis of every preview."""

from __future__ import annotations

from harnesslab.store import RunStore

RUNS = 5
"""Latest runs that are looked at."""


def typical_episode(runs: RunStore) -> dict[str, float] | None:
    """Means over the episodes of the latest runs: ``steps``, ``tokens``, ``seconds``, and how many ``episodes``.

    ``None`` when nothing was played yet.
    """
    rows = [row for run in runs.runs(limit=RUNS) for row in runs.episodes(run["id"]) if row["status"] == "finished"]
    if not rows:
        return None
    return {
        "episodes": len(rows),
        "steps": sum(row["steps"] for row in rows) / len(rows),
        "tokens": sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows) / len(rows),
        "seconds": sum(row["seconds"] for row in rows) / len(rows),
    }
