"""Replies that hold several actions: ask for one."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.harness.actionlines import blocks
from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import ACTION, REASONING, TRAJECTORY, calls_left_out
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

TEXT = "Give exactly one action, then stop and wait for its result."


def mine(view: View) -> Iterator[Idea]:
    """Fires where replies of failed episodes, hold more than one action line or native call."""
    text = view.harness.protocol == "text"
    clues = tuple(
        Clue(episode, step.index, f"{count} actions in one reply: {clip(step.raw, 80) or 'parallel calls'}")
        for episode, step in view.failed_steps()
        if (count := max(len(blocks(step.raw)) if text else 0, 1 + len(calls_left_out(step)))) > 1
    )
    if clues:
        yield Idea(
            kind="prompt",
            layer="contract",
            stem="one_action",
            about="Ask for exactly one action in a reply",
            variants=(Variant({"text": TEXT, "on": "observation"}), Variant({"text": TEXT})),
            labels=(ACTION, TRAJECTORY, REASONING),
            strength=0.25,
            clues=clues,
            single=False,
        )
