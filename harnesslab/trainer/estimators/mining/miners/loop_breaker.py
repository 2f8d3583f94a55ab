"""Circles of several steps: say so, or force something new."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.rollout.taxonomy import TRAJECTORY
from harnesslab.trainer.estimators.mining.idea import Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Offers the breaker to any run; replay keeps it only where failed episodes went round in circles."""
    force = {"force": True}
    yield Idea(
        kind="loop_breaker",
        layer="regulation",
        stem="loop_breaker",
        about="A circle of steps is named and, where the possible actions are known, left by one that is new.",
        variants=(Variant(force), Variant({"length": 8, **force})) if view.lists_actions else (Variant(),),
        labels=(TRAJECTORY,),
        strength=0.4,
    )
