"""Loops of several steps: warn the agent, or force an untried action."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.rollout.taxonomy import TRAJECTORY
from harnesslab.trainer.estimators.mining.idea import Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Offers the breaker to any run; replay keeps it only where failed episodes repeated the same steps."""
    force = {"force": True}
    yield Idea(
        kind="loop_breaker",
        layer="regulation",
        stem="loop_breaker",
        about=f"Detect loops and {'force an untried action' if view.lists_actions else 'warn the agent'}",
        variants=(Variant(force), Variant({"length": 8, **force})) if view.lists_actions else (Variant(),),
        labels=(TRAJECTORY,),
        strength=0.4,
    )
