"""Many actions are not possible although the possible ones are known: let the model choose among them only."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import ACTION, CONTRACT, action_text, is_error
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Fires where a failed episode lost steps to impossible or unread actions while a list of possible ones was there."""
    clues = tuple(
        Clue(
            episode, step.index, f"{clip(action_text(step.action) or step.raw, 60)} was not one of the possible actions"
        )
        for episode, step in view.failed_steps()
        if step.admissible and not step.choices and (step.action not in step.admissible or is_error(step))
    )
    if clues and view.tools is None:
        yield Idea(
            kind="constrain",
            layer="action",
            stem="constrain",
            about="Constrain replies to the possible actions",
            variants=(Variant(),),
            labels=(ACTION, CONTRACT),
            strength=0.6,
            clues=clues,
        )
