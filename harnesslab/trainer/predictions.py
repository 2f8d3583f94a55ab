"""What a proposal predicted, checked against what the gate saw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from harnesslab.rollout.records import Episode
from harnesslab.rollout.tasks import solved_shares, wilson_interval
from harnesslab.rollout.taxonomy import diagnose
from harnesslab.trainer.pairs import Pair
from harnesslab.trainer.proposal import Prediction

NEAR = 0.1
"""A share of tasks that is off by no more than this holds, however many tasks there are."""
Z = 1.96


def check(
    prediction: Prediction,
    pairs: Sequence[Pair],
    new: frozenset[str] | None,
    load: Callable[[Episode], Episode] = lambda episode: episode,
) -> dict[str, Any]:
    """Each condition of the prediction with what was ``predicted``, what was ``seen``, and whether it ``held``; empty for none.

    ``fires`` holds where the predicted share of tasks is in the 95% interval of the share seen, or off by at most :data:`NEAR`. ``cause`` holds where
    at most half of the failures with that cause are left; it says nothing where there were none. ``gain`` holds where
    the change of the solve rate is in the 95% interval of the change seen, and has its sign. ``load`` reads the steps of an episode.
    """
    scorable = [pair for pair in pairs if pair.scorable]
    if not scorable:
        return {}
    found: dict[str, Any] = {}
    if prediction.fires is not None:
        found["fires"] = _fires(prediction.fires, scorable, new)
    if prediction.cause:
        found |= _cause(prediction.cause, scorable, load)
    if prediction.gain is not None:
        found["gain"] = _gain(prediction.gain, scorable)
    return found


def _fires(predicted: float, pairs: Sequence[Pair], new: frozenset[str] | None) -> dict[str, Any]:
    tasks = {pair.task for pair in pairs}
    fired = {pair.task for pair in pairs if new is None or any(pair.after.fired.get(name) for name in new)}
    seen, low, high = wilson_interval(len(fired), len(tasks))
    return _said(predicted, seen, low <= predicted <= high or abs(predicted - seen) <= NEAR)


def _cause(cause: str, pairs: Sequence[Pair], load: Callable[[Episode], Episode]) -> dict[str, Any]:
    def count(episodes: Sequence[Episode]) -> int:
        found = [diagnose(load(episode)) for episode in episodes if not episode.solved]
        return sum(cause in (diagnosis.label, diagnosis.cause) for diagnosis in found)

    before, after = count([pair.before for pair in pairs]), count([pair.after for pair in pairs])
    if not before:
        return {}
    return {"cause": _said(cause, f"{before} -> {after}", 2 * after <= before)}


def _gain(predicted: float, pairs: Sequence[Pair]) -> dict[str, Any]:
    before = solved_shares(pair.before for pair in pairs)
    after = solved_shares(pair.after for pair in pairs)
    changes = [after[task] - before[task] for task in before]
    count = len(changes)
    mean = sum(changes) / count
    spread = sum((change - mean) ** 2 for change in changes) / max(1, count - 1)
    # One task more at either side keeps a panel without flips from being sure of itself.
    half = Z * math.sqrt(max(spread, 1 / count) / count)
    held = abs(predicted - mean) <= half and (predicted == 0 or predicted * mean > 0)
    return _said(predicted, mean, held)


def _said(predicted: Any, seen: Any, held: bool) -> dict[str, Any]:
    return {"predicted": _digits(predicted), "seen": _digits(seen), "held": held}


def _digits(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
