"""Replies without a readable action: say once more what a reply must look like."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import ACTION, TRUNCATED, unread_cause
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Fires where failed episodes gave replies in which no action could be read; after a slip first, then always.

    A reply that is empty because the token limit was spent on thinking needs more tokens, not a reminder.
    """
    clues = tuple(
        Clue(episode, step.index, f"no action in {clip(step.raw, 80) or 'an empty reply'}")
        for episode, step in view.failed_steps()
        if step.action is None and (step.raw.strip() or unread_cause(step) != TRUNCATED)
    )
    if clues:
        yield Idea(
            kind="reminder",
            layer="contract",
            stem="reminder",
            about="Repeat the reply format at the end of the request",
            variants=(Variant(when={"last_invalid": True}), Variant()),
            labels=(ACTION,),
            strength=0.25,
            clues=clues,
        )
