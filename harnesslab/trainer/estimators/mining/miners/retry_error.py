"""Errors followed by errors: show the failed action, the error and the form together."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.rollout.taxonomy import CONTRACT, is_error
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Fires where failed episodes went from one failed step straight into the next."""
    clues = []
    for episode in view.failed:
        for before, step in zip(episode.steps, episode.steps[1:], strict=False):
            if (is_error(before) or before.invalid) and (is_error(step) or step.invalid):
                clues.append(Clue(episode, step.index, "an error was followed by another one"))
    if clues:
        yield Idea(
            kind="retry_error",
            layer="regulation",
            stem="retry_error",
            about="Repeat the failed action and its error at the end of the request",
            variants=(Variant(), Variant({"form": False})),
            labels=(CONTRACT,),
            strength=0.25,
            clues=tuple(clues),
        )
