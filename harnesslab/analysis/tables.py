"""What a lab has on record, as tables for a person: the baseline's history, candidates, the learning curve, openings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from harnesslab.analysis.frames import CURVE_COLUMNS, curve_rows
from harnesslab.analysis.table import Table
from harnesslab.ledger import read_verdict, solved_counts, who_decided
from harnesslab.plaintext import counted
from harnesslab.store import Candidate, HistoryEntry, LabRepo

LOOKS = 100_000
"""Candidates that are looked through: more than any lab will see."""
OPENING_COLUMNS = ["when", "environment", "commit", "backbone", "who"]


def log_table(history: Iterable[HistoryEntry]) -> Table:
    """The baseline branch: commit, when, what, solved counts, who decided."""
    return Table([_log_row(entry) for entry in history], title="baseline")


def candidate_table(candidates: Iterable[Candidate], title: str) -> Table:
    """One row a candidate: id, what, layer, solved counts, reason, who decided, when."""
    return Table([_candidate_row(row) for row in candidates], title=title)


def curve_table(repo: LabRepo) -> Table:
    """The rows of :func:`~harnesslab.analysis.frames.curve_rows`, times as text."""
    rows = [row | {"when": "" if row["when"] is None else _when(row["when"])} for row in curve_rows(repo)]
    return Table(rows, title="learning curve", columns=CURVE_COLUMNS)


def opening_table(openings: Iterable[Mapping[str, Any]], environment: str) -> Table:
    """One row an opening of the sealed split; ``environment`` is the name for those that have none on record."""
    rows = [
        {
            "when": _when(opening["at"]),
            "environment": opening["environment"] or environment,
            "commit": opening["commit"][:10],
            "backbone": opening["backbone"].get("model"),
            "who": opening["who"],
            "lab": opening["lab"],
        }
        for opening in openings
    ]
    columns = [*OPENING_COLUMNS, *(["lab"] if any(row["lab"] for row in rows) else [])]
    return Table(rows, title="openings of the sealed split", columns=columns)


def prediction_table(repo: LabRepo) -> Table:
    """How often what was predicted held: one row an estimator, and one a kind of intervention of it, best first."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in repo.candidates(limit=LOOKS).rows:
        verdict = read_verdict(row.verdict)
        said = verdict.predictions if verdict is not None else {}
        if not said:
            continue
        for key in ((row.estimator or "?", "all"), (row.estimator or "?", row.kind or "?")):
            count = counts.setdefault(key, Counter())
            count["verdicts"] += 1
            for name, one in said.items():
                count["conditions"] += 1
                count[name] += one.get("held") is True
                count["held"] += one.get("held") is True
    rows: list[dict[str, Any]] = [
        {
            "estimator": estimator,
            "kind": kind,
            **{name: count[name] for name in ("verdicts", "conditions", "held", "fires", "cause", "gain")},
            "hit rate": round(count["held"] / count["conditions"], 3),
        }
        for (estimator, kind), count in counts.items()
    ]
    rows.sort(key=lambda row: (row["kind"] != "all", -row["hit rate"], row["estimator"], row["kind"]))
    return Table(rows, title="predictions that held")


def looks_of(repo: LabRepo) -> list[dict[str, Any]]:
    """Each look at the gate that the verdicts of a lab record, in the form of an opening."""
    found = []
    for row in repo.candidates(limit=LOOKS).rows:
        verdict = read_verdict(row.verdict)
        if verdict is None or verdict.counts is None:
            continue
        looks = verdict.statistics.get("looks")
        for number in range(len(looks) if isinstance(looks, list) else 1):
            backbone = verdict.identity.get("backbone")
            found.append(
                {
                    "id": f"gate/{row.commit}/{number}",
                    "at": row.decided_at or row.created,
                    "commit": row.commit,
                    "backbone": dict(backbone) if isinstance(backbone, Mapping) else {},
                    "who": str(verdict.decider),
                    "environment": str(verdict.identity.get("environment", "")),
                    "version": str(verdict.identity.get("version", "")),
                    "lab": "",
                    "split": "gate",
                }
            )
    return sorted(found, key=lambda look: (look["at"], look["id"]))


def look_table(looks: Iterable[Mapping[str, Any]], own: Iterable[Mapping[str, Any]]) -> Table:
    """One row a look at the gate, newest first; ``own``: those of them that are of this lab."""
    rows = opening_table(sorted(looks, key=lambda look: -look["at"]), "")
    here = len(list(own))
    rows.title = f"looks at the gate: {len(rows)}" + (
        f", {len(rows) - here} in earlier labs" if len(rows) > here else ""
    )
    return rows


def _log_row(entry: HistoryEntry) -> dict[str, Any]:
    verdict = (entry.candidate.verdict if entry.candidate else None) or {}
    return {
        "commit": entry.commit[:10],
        "when": _when(entry.created),
        "what": entry.subject,
        "solved": _solved(verdict),
        "decided by": str(who_decided(verdict) or ""),
    }


def _candidate_row(row: Candidate) -> dict[str, Any]:
    verdict = row.verdict or {}
    return {
        "id": row.id,
        "what": row.subject,
        "layer": row.layer,
        "solved": _solved(verdict),
        "reason": row.reason,
        "decided by": str(who_decided(verdict) or ""),
        "when": _when(row.decided_at or row.created),
    }


def _solved(verdict: Mapping[str, Any]) -> str:
    counts = solved_counts(verdict)
    return "{} -> {} of {}".format(*counts[:2], counted(counts[2], "task")) if counts else ""


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
