"""Candidates: lists, one in full, and what differs between two refs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesslab.ledger import OPEN, Verdict, read_verdict
from harnesslab.server import answers
from harnesslab.server.answers import (
    Diff,
    DiffFile,
    Endpoint,
    Evidence,
    Metric,
    Prediction,
    RefDetail,
    Refs,
    TaskOutcome,
)
from harnesslab.server.core import foreign
from harnesslab.server.core.labs import Lab
from harnesslab.server.core.rows import candidate_row, commit_row
from harnesslab.server.core.text import clip, facts, number
from harnesslab.server.queries import RefsQuery
from harnesslab.store import Candidate, Commit, Filter, Order, State

MAX_TASKS = 5_000
STATES: dict[str, tuple[State, ...]] = {
    "pending": OPEN,
    "rejected": ("rejected",),
    "promoted": ("promoted",),
}
ORDERS: dict[tuple[str, str], Order] = {
    ("time", "desc"): "time",
    ("time", "asc"): "-time",
    ("delta", "desc"): "delta",
    ("delta", "asc"): "-delta",
}


def page(lab: Lab, query: RefsQuery) -> Refs:
    """One page of candidates."""
    token = lab.version()
    if lab.repo is None:
        total, rows = foreign.page(lab, query)
        return Refs(items=rows, total=total, version=token)
    wanted = Filter(
        state=STATES[query.state],
        text=query.text or None,
        layer=query.layer or None,
        decided_by=query.decider or None,
        reason=query.reason or None,
    )
    order = ORDERS[query.sort, query.order]
    found = lab.repo.candidates(wanted, order=order, offset=query.offset, limit=query.limit)
    return Refs(items=[candidate_row(row) for row in found.rows], total=found.total, version=token)


def resolve(lab: Lab, ref: str) -> Commit:
    """The commit behind a full ref name, a commit id or `HEAD`; a candidate is also found where it has moved to."""
    candidate = lab.find(ref)
    return lab.git.commit(candidate.commit if candidate else ref)


def detail(lab: Lab, ref: str) -> RefDetail:
    """One candidate (or plain commit) with evidence, prediction, verdict and what can be done with it."""
    candidate = lab.find(ref)
    if candidate is None:
        return _plain_detail(lab, ref)
    verdict = read_verdict(candidate.verdict)
    prediction = candidate.meta.get("prediction")
    prediction = prediction if isinstance(prediction, Mapping) else {}
    flips = [clip(task, 500) for task in _list(prediction.get("flips"))]
    return RefDetail(
        row=candidate_row(candidate),
        parent=candidate.parent or None,
        evidence=[_evidence(item) for item in _list(candidate.meta.get("evidence"))[:100] if isinstance(item, Mapping)],
        prediction=Prediction(flips=flips[:200], trigger=clip(prediction.get("trigger"), 500)),
        verdict=_verdict(verdict, candidate) if verdict is not None else None,
        tasks=_tasks(lab, verdict, flips) if verdict is not None else [],
        actions=lab.ledger.possible(candidate),
        read_only=False,
    )


def diff(lab: Lab, base: str, head: str) -> Diff:
    """The files that differ between any two refs, both texts of each, bounded."""
    old, new = resolve(lab, base), resolve(lab, head)
    found = lab.git.diff(old.id, new.id)
    return Diff(
        base=Endpoint(name=base, commit=old.id, subject=clip(old.subject, 200)),
        head=Endpoint(name=head, commit=new.id, subject=clip(new.subject, 200)),
        files=[
            DiffFile(
                path=file.path,
                status="added" if file.status == "A" else "deleted" if file.status == "D" else "modified",
                base_text=file.before or "",
                head_text=file.after or "",
                binary=file.note == "binary",
                truncated=file.note.startswith("too large"),
            )
            for file in found.files
        ],
        truncated=found.truncated,
    )


def _plain_detail(lab: Lab, ref: str) -> RefDetail:
    commit = resolve(lab, ref)
    row = commit_row(commit, ref)
    if lab.repo is None:
        row = next((each for each in foreign.rows(lab) if ref in (each.ref, each.commit)), row)
    return RefDetail(
        row=row,
        parent=commit.parents[0] if commit.parents else None,
        actions=lab.ledger.possible(commit.id) if lab.repo is not None else [],
        read_only=lab.repo is None,
    )


def _verdict(verdict: Verdict, candidate: Candidate) -> answers.Verdict:
    return answers.Verdict(
        criterion=clip(verdict.criterion, 200),
        baseline=clip(verdict.baseline or candidate.parent, 100),
        candidate=candidate.commit,
        metrics=[
            Metric(name=clip(name, 100), baseline=number(before), candidate=number(after))
            for name, (before, after) in verdict.metrics.items()
        ],
        statistics=facts(verdict.statistics),
        cost=facts(verdict.cost),
        identity=facts(verdict.identity),
    )


def _tasks(lab: Lab, verdict: Verdict, predicted: list[str]) -> list[TaskOutcome]:
    """Task by task, flips first. Tasks that nobody solved are known from the runs only."""
    flips = {flip.task: flip for flip in verdict.flips}
    played = {side: _played(lab, verdict, side) for side in ("baseline", "candidate")}
    scored = set[str].intersection(*({task for task, scorable in played[side].items() if scorable} for side in played))
    won = {side: set(verdict.solved[side]) for side in played}
    names = list(dict.fromkeys([*flips, *(task for side in played for task in (*played[side], *sorted(won[side])))]))

    def outcome(side: str, task: str) -> bool | None:
        # Without a run on record the verdict names the solved tasks only, and a flip says that the other side failed.
        # A task that was not scored on both sides is no part of the verdict.
        return True if task in won[side] else False if task in scored or task in flips else None

    return [
        TaskOutcome(
            task=clip(task, 500),
            baseline=outcome("baseline", task),
            candidate=outcome("candidate", task),
            flip=task in flips,
            incidental=task in flips and flips[task].incidental,
            predicted=task in predicted,
            seen=any(task in played[side] for side in played),
        )
        for task in names[:MAX_TASKS]
    ]


def _played(lab: Lab, verdict: Verdict, side: str) -> dict[str, bool]:
    """The tasks of one side of a verdict's runs, each with whether any of its episodes could be scored."""
    run_id = verdict.runs.get(side)
    if lab.runs is None or run_id is None:
        return {}
    columns = lab.runs.episode_columns(run_id)
    tasks: dict[str, bool] = {}
    for task, status in zip(columns["task_id"], columns["status"], strict=True):
        tasks[task] = tasks.get(task, False) or status != "unscorable"
    return tasks


def _evidence(item: Mapping[str, Any]) -> Evidence:
    step = item.get("step")
    episode = item.get("episode")
    return Evidence(
        task=clip(item.get("task"), 500),
        episode=None if episode is None else clip(str(episode), 100),
        step=step if isinstance(step, int) and not isinstance(step, bool) else None,
        what=clip(item.get("what"), 1000),
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
