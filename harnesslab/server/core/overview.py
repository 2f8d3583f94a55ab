"""The state of one lab: its baseline, what is running, what changed, and its history."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.errors import StoreError
from harnesslab.server.core import foreign
from harnesslab.server.core.labs import Lab, Labs
from harnesslab.server.core.roots import find_labs
from harnesslab.server.core.text import clip, stamp
from harnesslab.server.problems import Problem
from harnesslab.store import HistoryEntry, LabRepo, RunStore
from harnesslab.store.objects import Commit, read_commits
from harnesslab.store.refs import NOTES

STALE_S = 300.0
"""A measurement that has shown no sign of life for so long was probably stopped."""

SPLITS = ("gate", "search", "sealed")
"""Which split's score stands for a baseline, the first one that was measured."""


def labs(every: Labs, starts: Sequence[str], depth: int) -> dict[str, Any]:
    """The labs below the root, or below the folders `starts` in it."""
    found = find_labs(every.root, [start for start in starts if start.strip()], depth)
    items = [
        {"path": path, "name": (every.root / path).resolve().name, "kind": kind, "problem": None}
        for path, kind in found.paths
    ]
    return {"items": items, "truncated": found.truncated, "problems": found.problems}


def overview(lab: Lab) -> dict[str, Any]:
    """Everything that the top of the sidebar shows."""
    token = version(lab)  # taken first: what changes while the rest is read will be seen at the next look
    if lab.repo is None:
        head = _head(lab)
        return {
            "lab": lab.summary(),
            "version": token,
            "baseline": _baseline(head, _branch(lab), None, None, None),
            "counts": foreign.counts(lab),
            "running": None,
            "dirty": [],
            "undo": None,
            "notices": lab.git.isolation.notices(),
        }
    head = _commit(lab, lab.repo.baseline())
    score, backbone, environment = _measured(lab, lab.repo, head.id)
    counts = lab.repo.counts()
    return {
        "lab": lab.summary(),
        "version": token,
        "baseline": _baseline(head, "main", score, backbone, environment),
        "counts": {
            "pending": counts.get("pending", 0) + counts.get("undecided", 0),
            "rejected": counts.get("rejected", 0),
            "promoted": counts.get("promoted", 0),
        },
        "running": running(lab),
        "dirty": [clip(path, 300) for path in lab.repo.dirty()[:50]],
        "undo": last_decision(lab, head),
        "notices": lab.repo.notices(),
    }


def live(lab: Lab) -> dict[str, Any]:
    """The change token and the run in progress: cheap, since it is asked every few seconds."""
    return {"version": version(lab), "running": running(lab)}


def version(lab: Lab) -> str:
    """Changes when a ref, a verdict, or the list of runs changes; not with each episode."""
    if lab.repo is None:
        parts = lab.git.text(
            "for-each-ref", "--format=%(objectname) %(refname)", "refs/candidates/", "refs/experiments/", "refs/heads/"
        )
    else:
        parts = lab.repo.version()
    if lab.runs is not None:
        latest = lab.runs.runs(limit=3)
        parts += "".join(f"|{run['id']}{run['status']}{run['finished']}" for run in latest)
    return hashlib.sha256(parts.encode()).hexdigest()[:20]


def running(lab: Lab) -> dict[str, Any] | None:
    """What is being measured right now, and how far it is."""
    going = lab.runs.progress() if lab.runs is not None else []
    if not going:
        return None
    latest = going[0]
    return {
        "what": clip(latest["what"], 200),
        "note": clip(latest["meta"].get("note"), 200),
        "run": clip(latest["meta"].get("run"), 100) or None,
        "done": latest["done"],
        "total": latest["total"],
        "updated": stamp(latest["updated"]) or "",
        "stale": time.time() - latest["updated"] > STALE_S,
    }


def history(lab: Lab, offset: int, limit: int) -> dict[str, Any]:
    """One page of the baseline's history, newest first."""
    token = version(lab)
    if lab.repo is None:
        rows = [row for row in foreign.rows(lab) if row["state"] == "promoted"]
        rows.sort(key=lambda row: row["proposed"], reverse=True)
        items = [_foreign_item(row) for row in rows[offset : offset + limit]]
        return {"items": items, "more": len(rows) > offset + limit, "version": token}
    # One more than is shown: it tells whether there is more, and its solved count is in its child's verdict.
    entries = lab.repo.history(limit=limit + 1, offset=offset)
    solved = _solved_counts(entries)
    items = [_item(entry, solved) for entry in entries[:limit]]
    return {"items": items, "more": len(entries) > limit, "version": token}


def last_decision(lab: Lab, head: Commit) -> dict[str, str] | None:
    """The newest decision that git allows to take back: on a candidate, or a rollback."""
    repo = lab.writable()
    notes = lab.git.resolve_many([NOTES])[0]
    noted = read_commits(lab.git, [notes])[0] if notes else None
    if head.meta.get("rollback_to") and (noted is None or head.created >= noted.created):
        return {"label": clip(head.subject, 200), "ref": head.id}
    if noted is None:
        return None
    state, _, candidate_id = noted.subject.partition(": ")  # as the store words the commits of its notes
    try:
        candidate = repo.candidate(candidate_id)
    except StoreError:  # a person's own note has another subject; then there is nothing to offer
        return None
    if candidate.state != state or state == "pending" or (state == "promoted" and candidate.commit != head.id):
        return None
    name = candidate.meta.get("name") or candidate.subject
    return {"label": clip(f"{name} ({state})", 200), "ref": candidate.ref}


def _measured(lab: Lab, repo: LabRepo, commit: str) -> tuple[dict[str, Any] | None, str | None, str | None]:
    """Score, backbone and environment of a baseline: from its newest run, else from the verdict that made it."""
    run = _newest_run(lab.runs, commit) if lab.runs is not None else None
    if run is not None and lab.runs is not None:
        columns = lab.runs.episode_columns(run["id"])
        outcomes = zip(columns["solved"], columns["status"], strict=True)
        scored = [solved for solved, status in outcomes if status != "unscorable"]
        score = _score(sum(scored), len(scored), run["split"])
        return score, clip(run["backbone"], 200) or None, clip(run["identity"].get("environment"), 200) or None
    verdict = repo.verdict(commit) or {}
    identity = _mapping(verdict.get("identity"))
    solved, total = _verdict_counts(verdict, "candidate")
    return (
        _score(solved, total, "gate") if solved is not None and total else None,
        clip(_mapping(identity.get("backbone")).get("model"), 200) or None,
        clip(identity.get("environment"), 200) or None,
    )


def _score(solved: int, total: int, split: str) -> dict[str, Any]:
    return {"solved": solved, "total": total, "split": split}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _newest_run(runs: RunStore, commit: str) -> dict[str, Any] | None:
    for split in SPLITS:
        found = runs.runs(limit=1, commit=commit, split=split, status="done")
        if found:
            return found[0]
    return None


def _solved_counts(entries: list[HistoryEntry]) -> dict[str, tuple[int, int | None]]:
    """Solved and total by commit, from the verdicts: each tells of its candidate and of the baseline below it."""
    known: dict[str, tuple[int, int | None]] = {}
    for entry in reversed(entries):
        verdict = entry.candidate.verdict if entry.candidate else None
        for side, commit in (("baseline", entry.parent), ("candidate", entry.commit)):
            solved, total = _verdict_counts(verdict or {}, side)
            if commit and solved is not None:
                known.setdefault(commit, (solved, total))
        if entry.rollback_to in known:
            known[entry.commit] = known[entry.rollback_to]
    return known


def _verdict_counts(verdict: Mapping[str, Any], side: str) -> tuple[int | None, int | None]:
    solved = verdict.get("solved")
    tasks = verdict.get("tasks")
    ids = solved.get(side) if isinstance(solved, Mapping) else None
    total = tasks if isinstance(tasks, int) and not isinstance(tasks, bool) else None
    # A person's verdict on an unmeasured candidate has empty lists and no tasks: that is not 'none solved'.
    if not isinstance(ids, list) or (total == 0 and not ids):
        return None, None
    return len(ids), total


def _item(entry: HistoryEntry, solved: dict[str, tuple[int, int | None]]) -> dict[str, Any]:
    candidate = entry.candidate
    verdict = (candidate.verdict if candidate else None) or {}
    person = verdict.get("decided_by") == "person" or verdict.get("override") is True
    count, total = solved.get(entry.commit, (None, None))
    return {
        "commit": entry.commit,
        "ref": candidate.ref if candidate else entry.commit,
        "subject": clip((candidate.meta.get("name") if candidate else None) or entry.subject, 200),
        "when": stamp(entry.created) or "",
        "kind": "rollback" if entry.rollback_to else "promotion" if candidate else "other",
        "who": clip((verdict.get("who") or "a person") if person else verdict.get("criterion") or entry.author, 200),
        "layer": clip(candidate.layer, 40) if candidate and candidate.layer else None,
        "solved": count,
        "total": total,
    }


def _foreign_item(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "commit": row["commit"],
        "ref": row["ref"],
        "subject": row["name"],
        "when": row["proposed"],
        "kind": "promotion",
        "who": row["who"] or "",
        "layer": None,
        "solved": None,
        "total": None,
    }


def _baseline(
    head: Commit, branch: str, score: dict[str, Any] | None, backbone: str | None, environment: str | None
) -> dict[str, Any]:
    return {
        "commit": head.id,
        "branch": clip(branch, 200),
        "subject": clip(head.subject, 200),
        "when": stamp(head.created) or "",
        "score": score,
        "backbone": backbone,
        "environment": environment,
    }


def _head(lab: Lab) -> Commit:
    commit = lab.git.resolve_many(["HEAD^{commit}"])[0]
    if commit is None:
        raise Problem("not_found", f"{lab.path} has no commit yet.")
    return _commit(lab, commit)


def _branch(lab: Lab) -> str:
    name = lab.git.text("symbolic-ref", "-q", "HEAD", ok=(0, 1))
    return name.removeprefix("refs/heads/") or "detached"


def _commit(lab: Lab, commit: str) -> Commit:
    found = read_commits(lab.git, [commit])
    if not found:
        raise Problem("corrupt", f"Commit {commit[:10]} of {lab.path} cannot be read; run `git fsck` in the lab.")
    return found[0]
