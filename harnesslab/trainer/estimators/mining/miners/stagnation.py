"""Nothing new is seen any more: say so and name what was not tried."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.rollout.taxonomy import TRAJECTORY
from harnesslab.trainer.estimators.mining.idea import Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Offers the note to any run; replay keeps it only where failed episodes stood still."""
    suggest = {"suggest": 5} if view.lists_actions else {}
    yield Idea(
        kind="stagnation",
        layer="regulation",
        stem="stagnation",
        about="Warn the agent when nothing new has happened for several steps",
        variants=(Variant(suggest), Variant({"steps": 3, **suggest})),
        labels=(TRAJECTORY,),
        strength=0.25,
    )
