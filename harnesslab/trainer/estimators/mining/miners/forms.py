"""Well-formed actions that the environment refuses: list the forms that it accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import CONTRACT, is_error
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

FIXED = 0.5
"""A word in more than this share of a verb's different actions belongs to the form."""
MOST = 12
"""Forms that are told at most."""


def mine(view: View) -> Iterator[Idea]:
    """Fires where failed episodes had text actions refused and the run shows which forms are accepted."""
    clues = tuple(
        Clue(episode, step.index, f"{clip(step.action, 60)} was answered with {clip(step.result, 80)}")
        for episode, step in view.failed_steps()
        if isinstance(step.action, str) and is_error(step)
    )
    forms = accepted_forms(view)
    if clues and forms:
        yield Idea(
            kind="prompt",
            layer="contract",
            stem="forms",
            about="List the action forms that the environment accepts",
            variants=(
                Variant({"text": "Use only these commands:\n" + "\n".join(f"- {form}" for form in forms)}),
                Variant({"text": f"Commands: {'; '.join(forms)}.", "on": "observation"}),
            ),
            labels=(CONTRACT,),
            strength=0.3,
            clues=clues,
            single=False,
        )


def accepted_forms(view: View) -> list[str]:
    """Forms such as ``put <...> on <...>``, the most used first, from what was listed as possible or accepted."""
    seen: Counter[str] = Counter()
    for episode in view.episodes:
        listed = {action for step in episode.steps for action in step.admissible or ()}
        taken = {s.action for s in episode.steps if isinstance(s.action, str) and s.executed and not is_error(s)}
        seen.update(listed | taken)
    verbs: dict[str, list[str]] = {}
    for action in sorted(seen):
        verbs.setdefault((action.split() or [""])[0].casefold(), []).append(action)
    total: Counter[str] = Counter()
    for actions in verbs.values():
        for form in _forms(actions):
            total[form] += sum(seen[action] for action in actions)
    return sorted(total, key=lambda form: (-total[form], form))[:MOST]


def _forms(actions: Sequence[str]) -> list[str]:
    """The forms of the actions of one verb: rare words are holes, neighbouring holes are one."""
    counts = Counter(word.casefold() for action in actions for word in set(action.split()))
    forms: set[str] = set()
    for action in actions:
        words: list[str] = []
        for place, word in enumerate(action.split()):
            keep = place == 0 or counts[word.casefold()] > FIXED * len(actions)
            if keep:
                words.append(word)
            elif words[-1] != "<...>":
                words.append("<...>")
        forms.add(" ".join(words))
    return sorted(forms)
