"""What speaks for a proposal: the places in the record, each with its text, and the prediction."""

from __future__ import annotations

from collections.abc import Sequence

from harnesslab.errors import StoreError
from harnesslab.lab import Lab
from harnesslab.markup import Markup, fold, join, paragraph
from harnesslab.panels.trajectory import moment_html
from harnesslab.plaintext import clip, counted
from harnesslab.rollout.records import Step
from harnesslab.trainer.proposal import Evidence, Prediction

SHOWN = 5
"""Pieces of evidence that are shown with their text."""
FLIPS = 40


def evidence_html(evidence: Sequence[Evidence], lab: Lab) -> Markup:
    """A folded line for each of the first places; unfolded it shows the step as it is in the store. The rest is counted."""
    if not evidence:
        return paragraph("None: added by a person.")
    shown = join(fold(f"{_place(item)}: {item.what}", _moment(item, lab)) for item in evidence[:SHOWN])
    rest = evidence[SHOWN:]
    if not rest:
        return shown
    tasks = len({item.task for item in rest})
    return shown + paragraph(f"… and {len(rest)} more in {counted(tasks, 'task')}; the failures panel shows each.")


def prediction_html(prediction: Prediction) -> Markup:
    """Which tasks should flip, and what must fire for it."""
    flips = prediction.flips
    names = ", ".join(clip(task, 60) for task in flips[:FLIPS]) + (
        f" and {len(flips) - FLIPS} more" if len(flips) > FLIPS else ""
    )
    tasks = f"{counted(len(flips), 'task')} should flip to solved: {names}." if flips else "No task is named."
    fire = (
        f"{clip(prediction.trigger, 160)} must fire." if prediction.trigger else "No particular intervention must fire."
    )
    said = "; ".join(clip(condition, 160) for condition in prediction.conditions())
    return paragraph(f"{tasks} {fire}" + (f" Predicted for the gate: {said}." if said else ""))


def _moment(item: Evidence, lab: Lab) -> Markup:
    if item.episode is None:
        return paragraph("The episode was not stored.")
    try:
        trace = lab.runs.trace(item.episode)
    except StoreError as error:
        return paragraph(error)
    step = next((step for step in trace if step.get("index") == item.step), None)
    if step is None:
        return paragraph(f"The episode has no step {item.step}.")
    return moment_html(Step.from_json(step))


def _place(item: Evidence) -> str:
    number = f", episode {item.episode}" if item.episode is not None else ""
    return f"{item.task[:40]}{number}, step {item.step}"
