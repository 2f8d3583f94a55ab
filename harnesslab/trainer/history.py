"""Earlier verdicts for estimators, read back from git."""

from __future__ import annotations

import math
from typing import cast

from harnesslab.ledger import DECIDED, read_verdict
from harnesslab.store import Candidate, LabRepo
from harnesslab.trainer.estimators.base import PastVerdict

LIMIT = 500
"""How many verdicts an estimator sees: the latest ones."""


def past_verdicts(repo: LabRepo) -> list[PastVerdict]:
    """The latest verdicts of a lab, oldest first."""
    rows = repo.candidates(state=DECIDED, limit=LIMIT).rows
    return [_past(row) for row in reversed(rows)]


def _past(row: Candidate) -> PastVerdict:
    verdict = read_verdict(row.verdict)
    past = {
        "content": row.meta.get("content"),
        "baseline": row.parent,
        "status": row.state,
        "layer": row.layer,
        "kind": row.kind,
        "name": row.meta.get("name"),
        "loss": verdict.value if verdict is not None and math.isfinite(verdict.value) else None,
        "reason": row.reason,
        "estimator": row.estimator,
        "predictions": {name: said.get("held") is True for name, said in verdict.predictions.items()}
        if verdict is not None and verdict.predictions
        else None,
    }
    return cast(PastVerdict, {key: value for key, value in past.items() if value is not None})
