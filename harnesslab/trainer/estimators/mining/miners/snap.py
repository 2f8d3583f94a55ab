"""Actions that are almost possible: take the possible one that is meant."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.rollout.taxonomy import ACTION, nearest
from harnesslab.trainer.estimators.mining.idea import Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

RUNGS = (90, 80, 70, 60)
"""Thresholds, strict ones first: a loose one puts words into the model's mouth."""


def mine(view: View) -> Iterator[Idea]:
    """Offers each threshold that catches refused actions which the stricter one missed; replay finds the steps."""
    scores = [
        nearest(step.action, step.admissible)[1]
        for _, step in view.failed_steps()
        if step.admissible and isinstance(step.action, str) and step.action not in step.admissible
    ]
    caught = [sum(score >= rung for score in scores) for rung in RUNGS]
    rungs = [rung for rung, now, before in zip(RUNGS, caught, [0, *caught], strict=False) if now > before]
    if rungs:
        yield Idea(
            kind="snap",
            layer="action",
            stem="snap",
            about="Snap near-miss actions to the closest possible one",
            variants=tuple(Variant({"threshold": rung}) for rung in rungs),
            labels=(ACTION,),
            strength=0.4,
        )
