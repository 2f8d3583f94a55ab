"""What an episode has cost up to now: the basis of every preview."""

from __future__ import annotations

from harnesslab.analysis.table import Table
from harnesslab.store import RunStore
from harnesslab.trainer.design import Design, Screening

RUNS = 5
"""Latest runs that are looked at."""
MANY = 100
"""Latest runs among which those of one model are looked for."""


def typical_episode(runs: RunStore, backbone: str | None = None) -> dict[str, float] | None:
    """Means over the episodes of the latest runs: ``steps``, ``tokens`` (of them ``prompt_tokens`` and ``completion_tokens``),
    ``seconds``, and how many ``episodes``.

    ``backbone``: only those of this model. ``None`` when nothing was played yet.
    """
    latest = [run for run in runs.runs(limit=RUNS if backbone is None else MANY) if backbone in (None, run["backbone"])]
    rows = [row for run in latest[:RUNS] for row in runs.episodes(run["id"]) if row["status"] == "finished"]
    if not rows:
        return None
    return {
        "episodes": len(rows),
        "steps": sum(row["steps"] for row in rows) / len(rows),
        "prompt_tokens": sum(row["prompt_tokens"] for row in rows) / len(rows),
        "completion_tokens": sum(row["completion_tokens"] for row in rows) / len(rows),
        "tokens": sum(row["prompt_tokens"] + row["completion_tokens"] for row in rows) / len(rows),
        "seconds": sum(row["seconds"] for row in rows) / len(rows),
    }


def preview(runs: RunStore | None, search: int, gate: int, budget: int, design: Design, epochs: int) -> Table:
    """Upper bound on what epochs would cost, estimated from the stored runs: the search split, both sides of the gate, and with screening one round each.

    ``search`` and ``gate`` count episodes, ``budget`` steps of one. ``runs``: None where nothing was played yet.
    """
    episodes = search + 2 * gate + (min(search, design.tasks) if isinstance(design, Screening) else 0)
    typical = typical_episode(runs) if runs is not None else None
    calls = typical["steps"] if typical else budget
    row = {
        "epochs": epochs,
        "episodes": episodes * epochs,
        "calls": round(episodes * epochs * calls),
        "tokens": round(episodes * epochs * typical["tokens"]) if typical else None,
        "seconds": round(episodes * epochs * typical["seconds"], 1) if typical else None,
        "basis": f"{typical['episodes']} stored episodes"
        if typical
        else "the step budget, since nothing has been played yet",
    }
    return Table([row], title="at most")
