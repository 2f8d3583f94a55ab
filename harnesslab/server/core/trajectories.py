"""Trajectories: one task, baseline beside candidate, from the first step where they part."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.errors import StoreError
from harnesslab.ledger import read_verdict
from harnesslab.server.answers import FullStep, Side, Step, Trajectories
from harnesslab.server.core.labs import Lab
from harnesslab.server.core.text import MAX_TEXT, clip, number
from harnesslab.server.problems import Problem
from harnesslab.store import Candidate

MAX_STEPS = 200
MAX_FULL = 400_000
TEXTS = ("observation", "raw", "action", "problem", "result", "note")
"""The texts of a step that a person reads."""
DONE = ("observation", "raw", "action", "executed", "result")
"""What makes two steps differ. An intervention that fires and leaves all of this as it was has changed nothing."""


def pair(lab: Lab, ref: str, task: str) -> Trajectories:
    """Both trajectories of one task: those of the verdict's runs, else the newest on record."""
    candidate = lab.find(ref)
    if candidate is None:
        raise Problem("not_found", f"{ref[:80]!r} is not a candidate; only candidates have trajectories of two sides.")
    baseline, other = _load(lab, candidate, "baseline", task), _load(lab, candidate, "candidate", task)
    return Trajectories(
        task=task,
        baseline=_side(baseline),
        candidate=_side(other),
        parting=_parting(baseline[1], other[1]) if baseline and other else None,
    )


def full_step(lab: Lab, episode: str, index: int) -> FullStep:
    """One step with the exact request and the raw replies, as indented JSON."""
    if lab.runs is None or not episode.isdecimal():
        raise Problem("not_found", f"There is no episode {episode[:40]!r} on record in {lab.path}.")
    try:
        steps = lab.runs.trace(int(episode))
    except StoreError as error:
        raise error if error.cause else Problem("not_found", str(error)) from None
    if index >= len(steps):
        raise Problem("not_found", f"Episode {episode} has {len(steps)} steps, so there is no step {index}.")
    return FullStep(
        episode=episode,
        index=index,
        request=_indented(steps[index].get("request")),
        replies=_indented(steps[index].get("replies")),
    )


def _load(lab: Lab, candidate: Candidate, side: str, task: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    """The episode of a task and its steps, from the verdict's run or else the newest run of that commit."""
    if lab.runs is None:
        return None
    verdict = read_verdict(candidate.verdict)
    judged = verdict.runs.get(side) if verdict is not None else None
    commit = candidate.parent if side == "baseline" else candidate.commit
    # Evidence speaks of tasks of another split than the one that decided, so the other runs are looked at too.
    others = (run["id"] for run in lab.runs.runs(limit=10, commit=commit))
    for run in [*([judged] if judged else []), *others]:
        for episode in lab.runs.episodes(run):
            if episode["task_id"] == task:
                return episode, lab.runs.trace(episode["id"])
    return None


def _side(loaded: tuple[dict[str, Any], list[dict[str, Any]]] | None) -> Side | None:
    if loaded is None:
        return None
    episode, steps = loaded
    return Side(
        run=episode["run_id"],
        episode=str(episode["id"]),
        solved=episode["solved"],
        steps=[_step(step, index) for index, step in enumerate(steps[:MAX_STEPS])],
    )


def _step(step: Mapping[str, Any], index: int) -> Step:
    texts = {name: _text(step.get(name)) for name in TEXTS}
    return Step(
        **{name: clip(text) for name, text in texts.items()},
        index=index,
        executed=bool(step.get("executed")),
        invalid=bool(step.get("invalid")),
        reward=number(step.get("reward")),
        fired=[clip(name, 200) for name in _strings(step.get("fired"))],
        truncated=any(len(text) > MAX_TEXT for text in texts.values()),
    )


def _parting(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> int | None:
    """The first step in which what was seen, said, done or answered differs; what fired does not count."""
    for index, (ours, theirs) in enumerate(zip(left, right, strict=False)):
        if any(ours.get(name) != theirs.get(name) for name in DONE):
            return index
    return min(len(left), len(right)) if len(left) != len(right) else None


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _indented(value: object) -> str:
    return clip(json.dumps(value, ensure_ascii=False, indent=2, default=str), MAX_FULL)


def _strings(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
