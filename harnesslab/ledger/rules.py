"""What may be done with a candidate now: one rule for everybody who asks, and the sentence where it may not."""

from __future__ import annotations

from harnesslab.errors import BaselineMoved, ConfigError, StoreError
from harnesslab.ledger.words import OPEN, Act
from harnesslab.store import Candidate, State

ALLOWED: dict[Act, tuple[State, ...]] = {
    "promote": OPEN,
    "reject": OPEN,
    "shelve": ("pending", "measured"),
    "override": ("rejected",),
    "undo": ("undecided", "rejected", "promoted"),
    "retry": (*OPEN, "rejected"),
    "rollback": ("promoted",),
}
"""The states in which each act makes sense; :func:`refusal` says the rest."""


def refusal(act: Act, candidate: Candidate, baseline: str) -> StoreError | None:
    """Why an act on a candidate is not allowed, as the error to raise; None where it is.

    A rollback is a matter of the baseline's history, which :class:`~harnesslab.ledger.Ledger` looks at.
    """
    name = f"Candidate {candidate.id}"
    if candidate.state not in ALLOWED[act]:
        return StoreError(f"{name} {_WRONG_STATE[act].format(state=candidate.state)}", cause="refused")
    moved = candidate.parent != baseline
    if act in ("promote", "override") and moved:
        return BaselineMoved(
            f"{name} was made on {candidate.parent[:10] or 'nothing'}, but the baseline is {baseline[:10]} now, so no "
            "fast-forward is possible; measure it again, or retry it on today's baseline."
        )
    if act == "retry" and candidate.state in OPEN and not moved:
        return StoreError(f"{name} was made on today's baseline; measure it or decide on it.", cause="refused")
    if act == "undo" and candidate.state == "promoted" and candidate.commit != baseline:
        return StoreError(
            f"{name} is no longer the newest promotion, so it cannot be undone; roll the baseline back instead.",
            cause="refused",
        )
    return None


def reason_given(why: str) -> str:
    """The reason that a person gives for a decision, without spaces around it. Raises ConfigError where there is none."""
    if not why.strip():
        raise ConfigError("A decision needs a reason: say why in a few words. It is stored with the decision.")
    return why.strip()


_ALREADY = "is {state} already; undo that first, override it, or retry it."
_WRONG_STATE: dict[Act, str] = {
    "promote": _ALREADY,
    "reject": _ALREADY,
    "shelve": _ALREADY,
    "override": "is {state}; only a rejection can be overridden.",
    "undo": "was not decided yet; there is nothing to undo.",
    "retry": "was promoted already; there is nothing to retry.",
    "rollback": "is {state}, so it is not in the baseline's history.",
}
