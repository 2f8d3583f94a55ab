"""Valid actions that lead nowhere: draw several and take the best."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean

from harnesslab.rollout.taxonomy import REASONING, TRAJECTORY, action_text
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

LADDER = (3, 5, 8)
"""Samples a step. Each costs a call, which is why the idea ranks below cheaper ones."""


def mine(view: View) -> Iterator[Idea]:
    """Fires where episodes failed although their actions were accepted: degeneration and residual reasoning.

    The words shared with the task get a weight where the run shows that they matter: in it, the chosen actions of solved
    episodes share more words with the instruction than the actions that were possible beside them.
    """
    clues = tuple(
        Clue(failure.episode, failure.diagnosis.step, failure.diagnosis.reason)
        for failure in view.failures
        if failure.label in ("trajectory degeneration", "residual reasoning")
    )
    if not clues:
        return
    telling = {"overlap": 1.0} if overlap_tells(view) else {}
    yield Idea(
        kind="rerank",
        layer="action",
        stem="rerank",
        about="Sample several replies and execute the best: valid, untried and most agreed on"
        + (", with words of the task" if telling else ""),
        variants=tuple(Variant({"samples": samples, **telling}) for samples in LADDER),
        labels=(TRAJECTORY, REASONING),
        strength=0.15,
        clues=clues,
    )


def overlap_tells(view: View) -> bool:
    """Whether, in solved episodes, chosen actions share more words with the task than the other possible ones."""
    chosen: list[float] = []
    others: list[float] = []
    for episode in view.solved:
        task = set(_words(episode.instruction))
        for step in episode.steps:
            if not step.admissible or step.invalid:
                continue
            text = action_text(step.action)
            chosen.append(_shared(text, task))
            others += [_shared(other, task) for other in step.admissible if other != text]
    return bool(chosen and others) and fmean(chosen) > fmean(others)


def _shared(text: str, task: set[str]) -> float:
    own = _words(text)
    return sum(word in task for word in own) / max(1, len(own))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
