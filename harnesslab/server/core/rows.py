"""Candidates as rows of a list, whatever wrote them."""

from __future__ import annotations

import math
from typing import Any

from harnesslab.ledger import CHOICE, Verdict, read_verdict, who_decided
from harnesslab.server.core.text import clip, number, stamp
from harnesslab.store import Candidate, Commit, ForeignCandidate


def candidate_row(candidate: Candidate) -> dict[str, Any]:
    """A candidate of the store. Its meta data and verdict are JSON that anybody may have written: nothing is trusted."""
    meta, verdict = candidate.meta, read_verdict(candidate.verdict)
    decider = who_decided(candidate.verdict)
    return {
        "ref": candidate.ref,
        "id": candidate.id,
        "commit": candidate.commit,
        "state": candidate.state,
        "name": clip(meta.get("name") or candidate.subject, 200),
        "about": clip(meta.get("about") or candidate.subject, 1000),
        "layer": clip(candidate.layer, 40) if candidate.layer else None,
        "kind": clip(candidate.kind, 80) if candidate.kind else None,
        "estimator": clip(candidate.estimator, 80) if candidate.estimator else None,
        "delta": round(candidate.delta) if candidate.delta is not None and verdict and verdict.counts else None,
        "loss": _loss(verdict) if verdict and verdict.counts else None,
        "decision": verdict.decision if verdict else CHOICE.get(candidate.state),
        "decided_by": decider.kind if decider else None,
        "who": clip(verdict.who, 200) or None if verdict else None,
        "when": stamp(candidate.decided_at),
        "proposed": stamp(candidate.created) or "",
        "why": clip(candidate.reason or (verdict.why if verdict else ""), 1000),
        "override": decider is not None and decider.override,
    }


def commit_row(commit: Commit, ref: str) -> dict[str, Any]:
    """A commit that is no candidate, such as the first one of a lab or a rollback."""
    return _bare(ref, commit.id, "commit", commit.subject, commit.created, None)


def foreign_row(foreign: ForeignCandidate) -> dict[str, Any]:
    """A candidate of a repository that harness-training made."""
    return _bare(foreign.ref, foreign.commit, foreign.state, foreign.subject, foreign.created, foreign.author)


def _bare(ref: str, commit: str, state: str, subject: str, created: float, who: str | None) -> dict[str, Any]:
    return {
        "ref": ref,
        "id": ref.rpartition("/")[2],
        "commit": commit,
        "state": state,
        "name": clip(subject, 200),
        "about": clip(subject, 1000),
        "layer": None,
        "kind": None,
        "estimator": None,
        "delta": None,
        "loss": None,
        "decision": CHOICE.get(state),
        "decided_by": None,
        "who": clip(who, 200) if who else None,
        "when": stamp(created),
        "proposed": stamp(created) or "",
        "why": "",
        "override": False,
    }


def _loss(verdict: Verdict) -> float | str | None:
    return None if math.isnan(verdict.value) else number(verdict.value)
