"""What happened earlier is forgotten: put it on a card."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnesslab.rollout.taxonomy import REASONING, TRAJECTORY
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.repeats import repeats
from harnesslab.trainer.estimators.mining.view import View

HEAD = 3
"""Words with which a sentence that tells a fact begins."""
FACTS = 3


def mine(view: View) -> Iterator[Idea]:
    """Fires where failed episodes were longer than what the model is shown of the past, or repeated themselves.

    The facts on the card are sentences that most episodes have and that end differently: what they end with is the fact.
    """
    window = view.harness.prompt.history
    clues = []
    for episode in view.failed:
        again = repeats(episode)
        if again:
            clues.append(Clue(episode, again[0].index, "repeated an action at the same observation"))
        elif len(episode.steps) > window + 1:
            clues.append(Clue(episode, window + 1, f"only the last {window} of {len(episode.steps)} steps are shown"))
    if not clues:
        return
    facts = {"facts": found} if (found := _facts(view)) else {}
    variants = [Variant(facts)] if facts else []
    yield Idea(
        kind="state_card",
        layer="contract",
        stem="state_card",
        about="Summarize known facts, failed attempts and remaining steps",
        variants=(
            *variants,
            Variant({"results": 3, **facts}),
            Variant({"results": 3, "tried": 0, "steps_left": False}),
        ),
        labels=(TRAJECTORY, REASONING),
        strength=0.15,
        clues=tuple(clues),
    )


def _facts(view: View) -> dict[str, str]:
    """Label to pattern: heads of sentences in at least half of the episodes, with two endings or more."""
    tasks: dict[str, set[str]] = {}
    ends: dict[str, set[str]] = {}
    for episode in view.episodes:
        for step in episode.steps:
            for sentence in re.split(r"(?<=[.!?])\s+|\n", step.result[:2000]):
                found = re.fullmatch(rf"((?:[\w']+ ){{{HEAD},{HEAD + 1}}}?)([\w -]{{1,40}})[.!?]?", sentence.strip())
                if found:
                    tasks.setdefault(found[1], set()).add(episode.task_id)
                    ends.setdefault(found[1], set()).add(found[2])
    everyone = len({episode.task_id for episode in view.episodes})
    heads = [h for h in tasks if len(tasks[h]) > 1 and len(tasks[h]) * 2 >= everyone and len(ends[h]) > 1]
    heads.sort(key=lambda head: (-len(tasks[head]), head))
    return {head.strip(): rf"{re.escape(head.strip())} ([\w -]+)" for head in heads[:FACTS]}
