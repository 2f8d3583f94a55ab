"""Episodes that end without having finished: say in time that the steps run out."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.rollout.taxonomy import TRAJECTORY, ended_itself
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Fires where failed episodes used up their steps; worth more where an action that finishes is known."""
    clues = tuple(
        Clue(episode, episode.steps[-1].index, f"ended with {episode.progress:.0%} done, no step left")
        for episode in view.failed
        if episode.steps and not ended_itself(episode)
    )
    if not clues:
        return
    finish = f" Finish the task with {' or '.join(view.finishers)} now." if view.finishers else " Finish the task now."
    note = "Only {left} step(s) are left." + finish
    yield Idea(
        kind="budget",
        layer="regulation",
        stem="budget",
        about="Announce the last steps of the budget",
        variants=tuple(Variant({"left": left, "note": note}) for left in (2, 4)),
        labels=(TRAJECTORY,),
        strength=0.3 if view.finishers else 0.05,
        clues=clues,
    )
