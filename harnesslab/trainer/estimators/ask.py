"""Asking an estimator, which may be anybody's code: what comes back is checked before anything rests on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harnesslab.errors import EstimatorFault, HarnessFileError, HarnesslabError
from harnesslab.harness.files import check_changes
from harnesslab.trainer.estimators.base import Estimator, PastVerdict
from harnesslab.trainer.proposal import Proposal, Proposals

if TYPE_CHECKING:
    from harnesslab.harness import Harness
    from harnesslab.trainer.failures import Failures


def ask(estimator: Estimator, failures: Failures, harness: Harness, history: Sequence[PastVerdict]) -> Proposals:
    """What the estimator proposes; a list of proposals will do. What cannot be a proposal is in ``refused``.

    Raises EstimatorFault when it raises, or returns anything else.
    """
    name = type(estimator).__name__
    try:
        given: Any = estimator.propose(failures, harness, history)
        items = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else None
    except HarnesslabError:
        raise
    except Exception as error:
        raise EstimatorFault(f"{name}.propose raised {type(error).__name__}: {error}") from error
    if items is None:
        raise EstimatorFault(f"{name}.propose must return Proposals or a list of Proposal, not {type(given).__name__}")
    wrong = [_fault(item) for item in items]
    if not any(wrong) and isinstance(given, Proposals):
        return given
    refused = [(_name(item), fault) for item, fault in zip(items, wrong, strict=True) if fault]
    if refused and len(refused) == len(items):
        raise EstimatorFault(f"{name}.propose returned nothing that is a proposal: {refused[0][1]}")
    kept = [item for item, fault in zip(items, wrong, strict=True) if not fault]
    return Proposals(kept, [*(given.refused if isinstance(given, Proposals) else ()), *refused])


def _fault(item: Any) -> str:
    """What keeps an item from being a proposal; empty where nothing does."""
    if not isinstance(item, Proposal):
        return f"a {type(item).__name__} is not a Proposal"
    changes = item.changes
    if not isinstance(changes, Mapping) or not changes:
        return "changes must map paths to their new text, at least one"
    if not all(isinstance(path, str) and isinstance(text, str | None) for path, text in changes.items()):
        return "changes must map paths (text) to text, or None to delete the file"
    for field in ("layer", "kind", "name", "about"):
        if not isinstance(getattr(item, field), str):
            return f"{field} must be text, not {type(getattr(item, field)).__name__}"
    try:
        Proposal.from_json(item.to_json()).content.encode()
        "".join([item.name, item.about, *(f"{path}{text}" for path, text in changes.items())]).encode()
        check_changes(changes)
    except (AttributeError, TypeError, ValueError) as error:
        return f"it cannot be stored: {type(error).__name__}: {error}"
    except HarnessFileError as error:
        return str(error)
    return ""


def _name(item: Any) -> str:
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else type(item).__name__
