"""Asking an estimator, which may be anybody's code: what comes back is checked before anything rests on it.

It is given a :class:`~harnesslab.trainer.estimators.brief.Brief` and nothing else. What cannot be a proposal is refused with one
sentence, and the others are ranked.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence, Set
from typing import Any

from harnesslab.errors import EstimatorFault, HarnessFileError, HarnesslabError
from harnesslab.harness.base import LAYERS
from harnesslab.harness.files import check_changes
from harnesslab.trainer.estimators.base import Estimator
from harnesslab.trainer.estimators.brief import Brief, Diagnoses, Remembers, asked
from harnesslab.trainer.proposal import Evidence, Prediction, Proposal, Proposals


def ask(estimator: Estimator, brief: Brief) -> Proposals:
    """What the estimator proposes, best first; a list of proposals will do. What cannot be a proposal is in ``refused``.

    Raises EstimatorFault when it raises, or returns anything else.
    """
    name = type(estimator).__name__
    brief = brief.with_diagnosis(asked(estimator, "diagnose", brief))
    try:
        further = {"brief": brief} if _takes_brief(estimator.propose) else {}
        given: Any = estimator.propose(brief.failures, brief.harness, brief.history, **further)
        items = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else None
    except HarnesslabError:
        raise
    except Exception as error:
        raise EstimatorFault(f"{name}.propose raised {type(error).__name__}: {error}") from error
    if items is None:
        raise EstimatorFault(f"{name}.propose must return Proposals or a list of Proposal, not {type(given).__name__}")
    tasks = {episode.task_id for episode in brief.failures.run}
    sent_back = {comment.content: comment.comment for comment in brief.comments}
    wrong = [_fault(item, tasks) for item in items]
    refused = [(_name(item), fault) for item, fault in zip(items, wrong, strict=True) if fault]
    if refused and len(refused) == len(items):
        raise EstimatorFault(f"{name}.propose returned no valid proposal: {refused[0][1]}")
    kept = [item for item, fault in zip(items, wrong, strict=True) if not fault]
    refused += [(item.name, f"sent back: {sent_back[item.content]}") for item in kept if item.content in sent_back]
    kept = [item for item in kept if item.content not in sent_back]
    if isinstance(given, Proposals):
        made = Proposals(kept, [*given.refused, *refused], ranked_by=given.ranked_by)
    else:
        made = Proposals(kept, refused)
    made.diagnosis = brief.diagnosis or str(getattr(given, "diagnosis", "") or "")
    return made


def wants_brief(estimator: Any) -> bool:
    """Whether an estimator looks at more than failures, harness and verdicts."""
    return _takes_brief(estimator.propose) or isinstance(estimator, Diagnoses | Remembers)


def _takes_brief(propose: Any) -> bool:
    try:
        return "brief" in inspect.signature(propose).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False


def _fault(item: Any, tasks: Set[str]) -> str:
    """What keeps an item from being a proposal; empty where nothing does. ``tasks``: those that may flip."""
    if not isinstance(item, Proposal):
        return f"a {type(item).__name__} is not a Proposal"
    changes = item.changes
    if not isinstance(changes, Mapping) or not changes:
        return "changes must map paths to their new text, at least one"
    if not all(isinstance(path, str) and isinstance(text, str | None) for path, text in changes.items()):
        return "changes must map paths (text) to text, or None to delete the file"
    for field in ("layer", "kind", "name", "about", "estimator"):
        if not isinstance(getattr(item, field), str):
            return f"{field} must be text, not {type(getattr(item, field)).__name__}"
    if item.layer not in (*LAYERS, "base"):
        return f"unknown layer {item.layer!r:.60}; layers are {', '.join(LAYERS)}, and base for harness.toml"
    if not item.name.strip() or not item.kind.strip():
        return "name and kind must not be empty"
    if fault := _claims(item, tasks):
        return fault
    try:
        Proposal.from_json(item.to_json()).content.encode()
        json.dumps(item.to_json(), ensure_ascii=False, allow_nan=False).encode()
        check_changes(changes)
    except (AttributeError, TypeError, ValueError) as error:
        return f"it cannot be stored: {type(error).__name__}: {error}"
    except HarnessFileError as error:
        return str(error)
    return ""


def _claims(item: Proposal, tasks: Set[str]) -> str:
    """What is wrong with the evidence and the prediction, which rank a proposal and are shown; empty where nothing is."""
    prediction: Any = item.prediction
    evidence: Any = item.evidence
    if not isinstance(prediction, Prediction) or not isinstance(prediction.trigger, str):
        return "prediction must be a Prediction, and its trigger text"
    flips = prediction.flips
    if not isinstance(flips, tuple | list) or not all(isinstance(task, str) for task in flips):
        return "prediction.flips must be a tuple of task ids"
    if len(set(flips)) < len(flips):
        return "prediction.flips names a task twice"
    if unknown := [task for task in flips if task not in tasks]:
        return f"prediction.flips names {unknown[0]!r:.80}, which is not a task of the diagnosed run"
    if wrong := _conditions(prediction):
        return wrong
    if not isinstance(evidence, tuple | list) or not all(isinstance(place, Evidence) for place in evidence):
        return "evidence must be a tuple of Evidence"
    for place in evidence:
        if not (isinstance(place.task, str) and isinstance(place.what, str) and type(place.step) is int):
            return "each Evidence needs task and what as text and step as a whole number"
        if place.episode is not None and type(place.episode) is not int:
            return "the episode of an Evidence must be a whole number or None"
    return ""


def _conditions(prediction: Prediction) -> str:
    for field, value, least in (("fires", prediction.fires, 0.0), ("gain", prediction.gain, -1.0)):
        number: Any = value
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= 1:
            return f"prediction.{field} must be a number between {least:g} and 1, not {number!r:.40}"
    cause: Any = prediction.cause
    return "" if isinstance(cause, str) else "prediction.cause must be text"


def _name(item: Any) -> str:
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else type(item).__name__
