"""What the store says of a candidate: plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harnesslab.store.objects import Commit
from harnesslab.store.refs import CANDIDATES, FOLDERS, STATES, State

Order = Literal["time", "delta", "-time", "-delta", "decided"]
"""Newest or largest delta first; with a minus, oldest or smallest first. Without a delta comes last either way.
`decided`: what was decided last comes first."""


@dataclass(frozen=True)
class Candidate:
    """A proposed change: one commit on top of a baseline, under exactly one state.

    `meta` is what `propose` was given; `verdict` the stored judgement or None. The rest is taken from
    these two for filters and tables: `layer`, `kind`, `estimator` from meta; `reason`, `decided_by`,
    `decided_at` (seconds since 1970), `delta` (larger is better) from the verdict.
    """

    id: str
    commit: str
    parent: str
    state: State
    subject: str
    created: float
    meta: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] | None = None
    layer: str | None = None
    kind: str | None = None
    estimator: str | None = None
    reason: str | None = None
    decided_by: str | None = None
    decided_at: float | None = None
    delta: float | None = None

    @property
    def ref(self) -> str:
        """The full name of the ref that holds it."""
        return FOLDERS[self.state] + self.id


@dataclass(frozen=True)
class Page:
    """One page of a listing: how many match in all, and the rows of this page."""

    total: int
    rows: list[Candidate]


@dataclass(frozen=True)
class Filter:
    """What to list. Every field that is given must match; `text` is a part of the subject, meta data or verdict."""

    state: State | tuple[State, ...] | None = None
    text: str | None = None
    layer: str | None = None
    decided_by: str | None = None
    reason: str | None = None


def build(candidate_id: str, folder_state: State, commit: Commit, verdict: Mapping[str, Any] | None) -> Candidate:
    """Put a candidate together from its ref's place, its commit and its note."""
    state: State = folder_state
    if FOLDERS[folder_state] == CANDIDATES:
        noted = verdict.get("state") if verdict else None
        state = next((each for each in STATES if each == noted and FOLDERS[each] == CANDIDATES), "pending")
    if state == "pending":
        verdict = None  # what is left of an undone decision judges nothing
    note = verdict or {}
    return Candidate(
        id=candidate_id,
        commit=commit.id,
        parent=commit.base,
        state=state,
        subject=commit.subject,
        created=commit.created,
        meta=commit.meta,
        verdict=verdict,
        layer=_text(commit.meta.get("layer")),
        kind=_text(commit.meta.get("kind")),
        estimator=_text(commit.meta.get("estimator")),
        reason=_text(note.get("reason")),
        decided_by=_text(note.get("decided_by")),
        decided_at=_number(note.get("decided_at")),
        delta=_number(note.get("delta")),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)
