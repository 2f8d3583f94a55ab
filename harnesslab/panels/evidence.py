"""What speaks for a proposal: the places in the record, each with its text, and the prediction."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.errors import StoreError
from harnesslab.lab import Lab
from harnesslab.panels.markup import section, text
from harnesslab.panels.trajectory import moment_html
from harnesslab.rollout.records import Step
from harnesslab.trainer.proposal import Evidence, Prediction

SHOWN = 5
"""Pieces of evidence that are shown with their text."""
LISTED = 25
"""Pieces of evidence that are listed at all."""
FLIPS = 40


def evidence_html(evidence: Sequence[Evidence], lab: Lab) -> str:
    """A folded line for each place; unfolded it shows the step as it is in the store."""
    if not evidence:
        return "<p>None: a person put it in.</p>"
    parts = [
        section(f"{_place(item)}: {item.what}", _moment(item, lab) if number < SHOWN else "<p>Open it in the failures panel.</p>", open_=False)
        for number, item in enumerate(evidence[:LISTED])
    ]  # fmt: skip
    if len(evidence) > LISTED:
        parts.append(f"<p>… and {len(evidence) - LISTED} more</p>")
    return "".join(parts)


def prediction_html(prediction: Prediction) -> str:
    """Which tasks should flip, and what must fire for it."""
    flips = prediction.flips
    names = ", ".join(text(task, 60) for task in flips[:FLIPS]) + (
        f" and {len(flips) - FLIPS} more" if len(flips) > FLIPS else ""
    )
    tasks = f"{len(flips)} tasks should flip to solved: {names}." if flips else "No particular task is named."
    fire = f"{text(prediction.trigger)} must fire." if prediction.trigger else "Nothing particular must fire."
    return f"<p>{tasks} {fire}</p>"


def _moment(item: Evidence, lab: Lab) -> str:
    if item.episode is None:
        return "<p>The episode was not stored.</p>"
    try:
        trace = lab.runs.trace(item.episode)
    except StoreError as error:
        return f"<p>{text(error)}</p>"
    step = next((step for step in trace if step.get("index") == item.step), None)
    return moment_html(Step.from_json(step)) if step is not None else f"<p>The episode has no step {item.step}.</p>"


def _place(item: Evidence) -> str:
    number = f", episode {item.episode}" if item.episode is not None else ""
    return f"{item.task[:40]}{number}, step {item.step}"
