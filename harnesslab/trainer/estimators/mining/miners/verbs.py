"""The same small slip in several tasks, such as another word for a verb: rewrite it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import ACTION, CONTRACT, nearest
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

CLOSE = 55.0
"""Similarity from which a possible action can be what was meant; the rest of the words must be equal anyway."""


def mine(view: View) -> Iterator[Idea]:
    """Fires where refused actions of two tasks or more differ from a possible one in the same first words."""
    slips: dict[tuple[str, str], list[Clue]] = {}
    for episode, step in view.failed_steps():
        if not isinstance(step.action, str) or not step.admissible or step.action in step.admissible:
            continue
        for meant in _meant(step.action, step.admissible):
            what = f"{clip(step.action, 60)} instead of {clip(meant, 60)}"
            slips.setdefault(_heads(step.action, meant), []).append(Clue(episode, step.index, what))
    taken: set[str] = set()
    for (said, meant), clues in sorted(slips.items()):
        if said and meant and len({clue.episode.task_id for clue in clues}) >= view.many():
            stem = f"say_{_word(meant)}"
            # Another word for the same is another file, or the two could not be in one harness.
            stem = stem if stem not in taken else f"{stem}_for_{_word(said)}"
            taken.add(stem)
            yield Idea(
                kind="rewrite",
                layer="action",
                stem=stem,
                about=f"Rewrite '{clip(said, 40)}' as '{clip(meant, 40)}'",
                variants=(
                    Variant(
                        {
                            "pattern": rf"(?i)^{re.escape(said)}\b",
                            "replacement": meant.replace("\\", "\\\\"),
                            "only_inadmissible": True,
                        }
                    ),
                ),
                labels=(ACTION, CONTRACT),
                strength=0.4,
                clues=tuple(clues),
                single=False,
            )


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_") or "it"


def _meant(action: str, admissible: tuple[str, ...]) -> list[str]:
    """The nearest possible action, if all that differs is how the two start."""
    best, score = nearest(action, admissible)
    return [best] if score >= CLOSE and all(_heads(action, best)) else []


def _heads(action: str, meant: str) -> tuple[str, str]:
    """What is left of both at the front when their common last words are taken away; empty without common ones."""
    said, right = action.split(), meant.split()
    common = 0
    while common < min(len(said), len(right)) and said[-1 - common].casefold() == right[-1 - common].casefold():
        common += 1
    if common == 0:
        return ("", "")
    return (" ".join(said[: len(said) - common]), " ".join(right[: len(right) - common]))
