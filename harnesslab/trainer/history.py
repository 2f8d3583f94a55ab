"""What estimators are told of earlier verdicts, read back from git."""

from __future__ import annotations

from typing import cast

from harnesslab.store import Candidate, LabRepo
from harnesslab.trainer.estimators.base import PastVerdict

LIMIT = 500
"""Verdicts that an estimator is told of, the latest ones."""


def past_verdicts(repo: LabRepo) -> list[PastVerdict]:
    """The latest verdicts of a lab, oldest first."""
    rows = repo.candidates(state=("promoted", "rejected", "undecided"), limit=LIMIT).rows
    return [_past(row) for row in reversed(rows)]


def _past(row: Candidate) -> PastVerdict:
    verdict = row.verdict or {}
    past = {
        "content": row.meta.get("content"),
        "baseline": row.parent,
        "status": row.state,
        "layer": row.layer,
        "kind": row.kind,
        "name": row.meta.get("name"),
        "loss": verdict.get("value"),
        "reason": row.reason,
    }
    return cast(PastVerdict, {key: value for key, value in past.items() if value is not None})
