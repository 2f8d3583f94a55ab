"""The state of one lab: its baseline, what is running, what changed, and its history."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.ledger import OPEN, read_verdict, solved_counts, who_decided
from harnesslab.rollout.tasks import by_task, won_tasks
from harnesslab.server import answers
from harnesslab.server.answers import Baseline, Counts, History, HistoryItem, LabSummary, Live, Overview, Running, Score
from harnesslab.server.core import foreign
from harnesslab.server.core.labs import Lab, Labs
from harnesslab.server.core.roots import find_labs
from harnesslab.server.core.text import clip, stamp
from harnesslab.store import Commit, HistoryEntry, LabRepo, RunStore

STALE_S = 300.0
"""A measurement that has shown no sign of life for so long was probably stopped."""

SPLITS = ("gate", "search", "sealed")
"""Which split's score stands for a baseline, the first one that was measured."""


MIXED = 200
"""Runs of one commit that are looked through for one that played it alone."""


def labs(every: Labs, starts: Sequence[str], depth: int) -> answers.Labs:
    """The labs below the root, or below the folders `starts` in it."""
    found = find_labs(every.root, [start for start in starts if start.strip()], depth)
    items = [LabSummary(path=path, name=(every.root / path).resolve().name, kind=kind) for path, kind in found.paths]
    return answers.Labs(items=items, truncated=found.truncated, problems=found.problems)


def overview(lab: Lab) -> Overview:
    """Everything that the top of the sidebar shows."""
    token = lab.version()  # taken first: what changes while the rest is read will be seen at the next look
    if lab.repo is None:
        head = lab.git.commit("HEAD")
        branch = (lab.git.head() or "detached").removeprefix("refs/heads/")
        return Overview(
            lab=lab.summary(),
            version=token,
            baseline=_baseline(head, branch),
            counts=foreign.counts(lab),
            notices=lab.git.notices(),
        )
    head = lab.repo.commit(lab.repo.baseline())
    score, backbone, environment = _measured(lab, lab.repo, head.id)
    counts = lab.repo.counts()
    return Overview(
        lab=lab.summary(),
        version=token,
        baseline=_baseline(head, "main", score=score, backbone=backbone, environment=environment),
        counts=Counts(
            pending=sum(counts.get(state, 0) for state in OPEN),
            rejected=counts.get("rejected", 0),
            promoted=counts.get("promoted", 0),
        ),
        running=running(lab),
        dirty=[clip(path, 300) for path in lab.repo.dirty()[:50]],
        undo=_undo(lab),
        notices=lab.repo.notices(),
    )


def live(lab: Lab) -> Live:
    """The change token and the run in progress: cheap, since it is asked every few seconds."""
    return Live(version=lab.version(), running=running(lab))


def running(lab: Lab) -> Running | None:
    """What is being measured right now, and how far it is."""
    going = lab.runs.progress() if lab.runs is not None else []
    if not going:
        return None
    latest = going[0]
    return Running(
        what=clip(latest["what"], 200),
        note=clip(latest["meta"].get("note"), 200),
        run=clip(latest["meta"].get("run"), 100) or None,
        done=latest["done"],
        total=latest["total"],
        updated=stamp(latest["updated"]) or "",
        stale=time.time() - latest["updated"] > STALE_S,
    )


def history(lab: Lab, offset: int, limit: int) -> History:
    """One page of the baseline's history, newest first."""
    token = lab.version()
    if lab.repo is None:
        rows = [row for row in foreign.rows(lab) if row.state == "promoted"]
        rows.sort(key=lambda row: row.proposed, reverse=True)
        items = [_foreign_item(row) for row in rows[offset : offset + limit]]
        return History(items=items, more=len(rows) > offset + limit, version=token)
    # One more than is shown: it tells whether there is more, and its solved count is in its child's verdict.
    entries = lab.repo.history(limit=limit + 1, offset=offset)
    solved = _solved_counts(entries)
    items = [_item(entry, solved) for entry in entries[:limit]]
    return History(items=items, more=len(entries) > limit, version=token)


def _undo(lab: Lab) -> answers.Undo | None:
    last = lab.ledger.last_decision()
    return None if last is None else answers.Undo(label=clip(last.label, 200), ref=last.ref)


def _measured(lab: Lab, repo: LabRepo, commit: str) -> tuple[Score | None, str | None, str | None]:
    """Score, backbone and environment of a baseline: from its newest run, else from the verdict that made it."""
    run = _newest_run(lab.runs, commit) if lab.runs is not None else None
    if run is not None and lab.runs is not None:
        columns = lab.runs.episode_columns(run["id"])
        rows = zip(columns["task_id"], columns["solved"], columns["status"], strict=True)
        scored = [(task, solved) for task, solved, status in rows if status != "unscorable"]
        score = Score(solved=len(won_tasks(scored)), total=len(by_task(scored)), split=run["split"])
        return score, clip(run["backbone"], 200) or None, clip(run["identity"].get("environment"), 200) or None
    verdict = read_verdict(repo.verdict(commit))
    if verdict is None:
        return None, None, None
    identity, counts = verdict.identity, verdict.counts
    return (
        Score(solved=counts[1], total=counts[2], split="gate") if counts else None,
        clip(_mapping(identity.get("backbone")).get("model"), 200) or None,
        clip(identity.get("environment"), 200) or None,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _newest_run(runs: RunStore, commit: str) -> dict[str, Any] | None:
    for split in SPLITS:
        found = runs.runs(limit=MIXED, commit=commit, split=split, status="done")
        # A screening plays other harnesses on top of the commit, which say nothing of it alone.
        alone = next((run for run in found if run["purpose"] != "screen"), None)
        if alone is not None:
            return alone
    return None


def _solved_counts(entries: list[HistoryEntry]) -> dict[str, tuple[int, int]]:
    """Solved and total by commit, from the verdicts: each tells of its candidate and of the baseline below it."""
    known: dict[str, tuple[int, int]] = {}
    for entry in reversed(entries):
        verdict = entry.candidate.verdict if entry.candidate else None
        if (counts := solved_counts(verdict)) is not None:
            for commit, solved in ((entry.parent, counts[0]), (entry.commit, counts[1])):
                if commit:
                    known.setdefault(commit, (solved, counts[2]))
        if entry.rollback_to in known:
            known[entry.commit] = known[entry.rollback_to]
    return known


def _item(entry: HistoryEntry, solved: dict[str, tuple[int, int]]) -> HistoryItem:
    candidate = entry.candidate
    decider = who_decided(candidate.verdict if candidate else None)
    count, total = solved.get(entry.commit, (None, None))
    return HistoryItem(
        commit=entry.commit,
        ref=candidate.ref if candidate else entry.commit,
        subject=clip((candidate.meta.get("name") if candidate else None) or entry.subject, 200),
        when=stamp(entry.created) or "",
        kind="rollback" if entry.rollback_to else "promotion" if candidate else "other",
        who=clip(decider.name if decider else entry.author, 200),
        layer=clip(candidate.layer, 40) if candidate and candidate.layer else None,
        solved=count,
        total=total,
    )


def _foreign_item(row: answers.RefRow) -> HistoryItem:
    return HistoryItem(
        commit=row.commit, ref=row.ref, subject=row.name, when=row.proposed, kind="promotion", who=row.who or ""
    )


def _baseline(head: Commit, branch: str, **measured: Any) -> Baseline:
    return Baseline(
        commit=head.id,
        branch=clip(branch, 200),
        subject=clip(head.subject, 200),
        when=stamp(head.created) or "",
        **measured,
    )
