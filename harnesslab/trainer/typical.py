"""What an episode has cost up to now: the basis of every preview."""

from __future__ import annotations

from collections.abc import Mapping

from harnesslab.llm.meter import Price
from harnesslab.store import RunStore
from harnesslab.trainer.estimators.brief import Costs

COSTS = ("calls", "tokens", "money", "seconds")
"""What a cost is counted in."""
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


def cost_of(episodes: int, typical: Mapping[str, float] | None, price: Price | None) -> dict[str, float | None]:
    """``calls``, ``tokens``, ``money`` and ``seconds`` of so many typical episodes; None for what is not known."""
    if typical is None:
        return dict.fromkeys(COSTS)
    money = None if price is None else price.of(typical["prompt_tokens"], typical["completion_tokens"])
    return {
        "calls": round(episodes * typical["steps"]),
        "tokens": round(episodes * typical["tokens"]),
        "money": None if money is None else round(episodes * money, 4),
        "seconds": round(episodes * typical["seconds"], 1),
    }


def proposer_cost(estimator: object, epochs: int) -> dict[str, float | None]:
    """What the estimator's own calls cost at most in so many epochs; empty where it makes none.

    Such an estimator declares it (:class:`~harnesslab.trainer.estimators.brief.Costs`). It is asked once an epoch, at most.
    """
    if not isinstance(estimator, Costs):
        return {}
    each = estimator.at_most
    return {name: None if (cost := each.get(name)) is None else cost * epochs for name in COSTS}
