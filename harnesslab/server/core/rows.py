"""Candidates as rows of a list, whatever wrote them."""

from __future__ import annotations

import math
from typing import Any

from harnesslab.ledger import CHOICE, Verdict, read_verdict, who_decided
from harnesslab.server.answers import RefRow
from harnesslab.server.core.columns import cells
from harnesslab.server.core.text import clip, number, stamp
from harnesslab.store import Candidate, Commit, ForeignCandidate


def candidate_row(candidate: Candidate) -> RefRow:
    """A candidate of the store. Its meta data and verdict are JSON that anybody may have written: nothing is trusted."""
    meta, verdict, decider = candidate.meta, read_verdict(candidate.verdict), who_decided(candidate.verdict)
    measured = verdict is not None and verdict.counts is not None
    return _row(
        candidate.ref,
        candidate,
        id=candidate.id,
        commit=candidate.commit,
        state=candidate.state,
        name=clip(meta.get("name") or candidate.subject, 200),
        about=clip(meta.get("about") or candidate.subject, 1000),
        layer=clip(candidate.layer, 40) if candidate.layer else None,
        columns=cells(candidate, verdict),
        delta=round(candidate.delta) if measured and candidate.delta is not None else None,
        loss=_loss(verdict) if measured else None,
        decision=verdict.decision if verdict is not None else CHOICE.get(candidate.state),
        decided_by=decider.kind if decider is not None else None,
        who=clip(verdict.who, 200) or None if verdict is not None else None,
        when=stamp(candidate.decided_at),
        why=clip(candidate.reason or (verdict.why if verdict is not None else ""), 1000),
        override=decider is not None and decider.override,
    )


def commit_row(commit: Commit, ref: str) -> RefRow:
    """A commit that is not a candidate, such as the first one of a lab or a rollback."""
    return _row(ref, commit, commit=commit.id, state="commit", when=stamp(commit.created))


def foreign_row(foreign: ForeignCandidate) -> RefRow:
    """A candidate of a repository that harness-training made."""
    return _row(
        foreign.ref,
        foreign,
        commit=foreign.commit,
        state=foreign.state,
        decision=CHOICE.get(foreign.state),
        who=clip(foreign.author, 200) or None,
        when=stamp(foreign.created),
    )


def _row(ref: str, of: Candidate | Commit | ForeignCandidate, **fields: Any) -> RefRow:
    same = {
        "ref": ref,
        "id": ref.rpartition("/")[2],
        "name": clip(of.subject, 200),
        "about": clip(of.subject, 1000),
        "proposed": stamp(of.created) or "",
    }
    return RefRow(**(same | fields))


def _loss(verdict: Verdict | None) -> float | str | None:
    return None if verdict is None or math.isnan(verdict.value) else number(verdict.value)
