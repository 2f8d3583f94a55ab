"""The same action at the same observation, again: do not do it twice."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import TRAJECTORY, action_text
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.repeats import repeats
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Fires where failed episodes repeated an action on the observation on which they had done it before."""
    clues = tuple(
        Clue(episode, step.index, f"{clip(action_text(step.action), 60)} was already tried at the same observation")
        for episode in view.failed
        for step in repeats(episode)
    )
    if clues:
        yield Idea(
            kind="no_repeat",
            layer="regulation",
            stem="no_repeat",
            about="Don't repeat an action already tried at the same observation",
            variants=(Variant(), Variant({"limit": 15})),
            labels=(TRAJECTORY,),
            strength=0.5,
            clues=clues,
        )
