"""Replies that hold several actions: ask for one."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.harness.protocol import blocks
from harnesslab.rollout.taxonomy import ACTION, REASONING, TRAJECTORY, clip
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

TEXT = "Give exactly one action, then stop and wait for its result."


def mine(view: View) -> Iterator[Idea]:
    """Fires where replies of failed episodes, in the text protocol, hold more than one action line."""
    if view.harness.protocol != "text":
        return
    clues = tuple(
        Clue(episode, step.index, f"{len(found)} actions in one reply: {clip(step.raw, 80)}")
        for episode, step in view.failed_steps()
        if len(found := blocks(step.raw)) > 1
    )
    if clues:
        yield Idea(
            kind="prompt",
            layer="contract",
            stem="one_action",
            about="A reply is to hold one action.",
            variants=(Variant({"text": TEXT, "on": "observation"}), Variant({"text": TEXT})),
            labels=(ACTION, TRAJECTORY, REASONING),
            strength=0.25,
            clues=clues,
            single=False,
        )
