"""Earlier candidates for estimators, read back from git and the records. Of the gate only counts get through, never a task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from harnesslab.lab import Lab
from harnesslab.ledger import DECIDED, Verdict, read_verdict, who_decided
from harnesslab.rollout.env import Split, tasks_of
from harnesslab.rollout.records import Episode
from harnesslab.store import Candidate, LabRepo
from harnesslab.trainer.estimators.base import PastVerdict
from harnesslab.trainer.hidden import Hidden

LIMIT = 500
"""How many verdicts an estimator sees: the latest ones."""
TRACED = 20
"""The latest candidates whose episodes on the search split are given with them."""
_RUNS = 200


def past_verdicts(repo: LabRepo, hidden: Hidden | None = None) -> list[PastVerdict]:
    """The latest verdicts of a lab, oldest first, without what only the records know; see :func:`past_candidates`."""
    hidden = hidden or Hidden(())
    rows = repo.candidates(state=DECIDED, limit=LIMIT).rows
    return [_past(row, hidden) for row in reversed(rows)]


def past_candidates(lab: Lab, hidden: Hidden) -> list[PastVerdict]:
    """The latest judged candidates of a lab, oldest first: what they changed, what came of it, their search episodes."""
    rows = lab.repo.candidates(state=DECIDED, limit=LIMIT).rows
    traced = {row.id for row in rows[:TRACED]}
    runs = lab.runs.runs(split="search", limit=_RUNS) if lab.recorded else []
    found: list[PastVerdict] = []
    for row in reversed(rows):
        past = _past(row, hidden)
        verdict = read_verdict(row.verdict)
        if verdict is not None:
            past.update(_outcome(lab, row, verdict))
        past["changes"] = _changes(lab.repo, row.parent, row.commit)
        if row.id in traced and (episodes := list(_episodes(lab, row, runs))):
            past["episodes"] = episodes
        found.append(past)
    return found


def hidden_ids(lab: Lab) -> set[str]:
    """The ids of the tasks that no proposer may see: those of the gate and the sealed split."""
    splits: tuple[Split, ...] = ("gate", "sealed")
    seen = {task.id for task in tasks_of(lab.environment, "search")}
    return {task.id for split in splits for task in tasks_of(lab.environment, split)} - seen


def _past(row: Candidate, hidden: Hidden) -> PastVerdict:
    verdict = read_verdict(row.verdict)
    decider = who_decided(row.verdict)
    past = {
        "content": row.meta.get("content"),
        "baseline": row.parent,
        "status": row.state,
        "layer": row.layer,
        "kind": row.kind,
        "name": row.meta.get("name"),
        "about": hidden.mask(str(row.meta.get("about") or "")),
        "estimator": row.estimator,
        "decided_by": decider.kind if decider is not None else None,
        "prediction": row.meta.get("prediction"),
        "loss": verdict.value if verdict is not None and math.isfinite(verdict.value) else None,
        "reason": hidden.mask(row.reason) if row.reason else None,
        "predictions": {name: said.get("held") is True for name, said in verdict.predictions.items()}
        if verdict is not None and verdict.predictions
        else None,
    }
    return cast(PastVerdict, {key: value for key, value in past.items() if value is not None})


def _outcome(lab: Lab, row: Candidate, verdict: Verdict) -> PastVerdict:
    """What was measured, in counts."""
    past: PastVerdict = {
        "flips": {
            "gained": sum(flip.after for flip in verdict.flips),
            "lost": sum(flip.before for flip in verdict.flips),
            "incidental": sum(flip.incidental for flip in verdict.flips),
        }
    }
    if verdict.counts is None:
        return past
    before, after, tasks = verdict.counts
    past["solved"] = (before, after, tasks)
    fired = _fired(lab, row, verdict)
    if fired is not None:
        past["fired"] = fired
    return past


def _fired(lab: Lab, row: Candidate, verdict: Verdict) -> float | None:
    """The share of the candidate's gate episodes in which it fired; None where it is not on record."""
    run, name = verdict.runs.get("candidate"), str(row.meta.get("name") or "")
    if not run or not name or not lab.recorded:
        return None
    played = [Episode.from_summary(summary) for summary in lab.runs.episodes(run)]
    scorable = [episode for episode in played if episode.status == "finished"]
    return round(sum(bool(e.fired.get(name)) for e in scorable) / len(scorable), 3) if scorable else None


@lru_cache(maxsize=2 * LIMIT)
def _changes(repo: LabRepo, parent: str, commit: str) -> Mapping[str, str | None]:
    before, after = repo.files(parent), repo.files(commit)
    return {
        path: after[path].decode("utf-8", "replace") if path in after else None
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    }


def _episodes(lab: Lab, row: Candidate, runs: Iterable[Mapping[str, Any]]) -> Iterable[Episode]:
    """The search episodes that were played with the candidate, whole."""
    content = row.meta.get("content")
    for run in runs:
        on = run["meta"].get("on")
        mixed = isinstance(on, Mapping)
        if not mixed and run["commit"] != row.commit:
            continue
        for summary in lab.runs.episodes(run["id"]):
            episode = Episode.from_summary(summary)
            if not mixed or content in (on.get(episode.task_id) or ()):
                yield lab.load_steps(episode)
