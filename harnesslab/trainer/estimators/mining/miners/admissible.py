"""The model does not see the possible actions although they are known: list them."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import ACTION, CONTRACT, action_text
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Fires where failed episodes chose, or had to choose, without the list in their request."""
    clues = tuple(
        Clue(episode, step.index, f"chose {clip(action_text(step.action) or step.raw, 60)} without seeing the choices")
        for episode, step in view.failed_steps()
        if step.admissible and (step.invalid or step.choices)
    )
    if clues:
        yield Idea(
            kind="admissible",
            layer="contract",
            stem="admissible",
            about="List the possible actions below the observation",
            variants=(Variant(), Variant({"inline": True}), Variant({"hide_tried": True})),
            labels=(ACTION, CONTRACT),
            strength=0.3,
            clues=clues,
        )
