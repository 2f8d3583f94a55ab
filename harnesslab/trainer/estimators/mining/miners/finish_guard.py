"""Finishing before anything was done, or right after an error: not yet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from harnesslab.rollout.taxonomy import TRAJECTORY, is_error
from harnesslab.trainer.estimators.mining.idea import Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

PREFIX = 12
"""Characters of the head of a good result that the guard waits for, at most."""


def mine(view: View) -> Iterator[Idea]:
    """Fires where a tool that finishes was called without the work that the other tools do; replay finds the steps.

    A head that the results before the finish of all solved episodes share, and no error has, is a stronger condition.
    """
    for finisher in view.finishers:
        worker = _worker(view)
        if worker is None:
            return
        message = f"It is too early for {finisher}. Call {worker} first and read its result."
        base = {"finish_tool": finisher, "until_tool": worker, "message": message}
        head = _good_head(view, finisher)
        good = f"There is no result yet to finish with. Correct the call of {worker} first."
        variants: list[dict[str, Any]] = [base]
        if head:
            strict = {"finish_tool": finisher, "until_observation": f"^{re.escape(head)}", "message": good}
            variants = [strict, base]
        yield Idea(
            kind="finish_guard",
            layer="regulation",
            stem="finish_guard" if finisher == view.finishers[0] else f"finish_guard_{finisher}",
            about=f"Block {finisher} until the work is done",
            variants=tuple(Variant(params) for params in variants),
            labels=(TRAJECTORY,),
            strength=0.35,
            single=False,
        )


def _worker(view: View) -> str | None:
    """The tool that is called most among those that do not finish."""
    counts = Counter(
        step.tool
        for episode in view.episodes
        for step in episode.steps
        if step.tool and step.tool not in view.finishers and not step.invalid
    )
    return min(counts, key=lambda name: (-counts[name], name)) if counts else None


def _good_head(view: View, finisher: str) -> str:
    """What the observations before the finish of solved episodes start with, if no error starts so; may be empty."""
    good = [
        step.observation.strip()
        for episode in view.solved
        for step in episode.steps[1:]
        if step.tool == finisher and step is episode.steps[-1]
    ]
    bad = [step.result.strip() for _, step in view.failed_steps() if is_error(step)]
    first = {episode.steps[0].observation.strip() for episode in view.episodes if episode.steps}
    head = _common_head(good)[:PREFIX] if len(good) > 1 else ""
    return "" if not head or any(text.startswith(head) for text in (*bad, *sorted(first))) else head


def _common_head(texts: Sequence[str]) -> str:
    """The longest text that all ``texts`` start with."""
    first, last = min(texts), max(texts)
    size = next((place for place, char in enumerate(first) if not last.startswith(char, place)), len(first))
    return first[:size]
