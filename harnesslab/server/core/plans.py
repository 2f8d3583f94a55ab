"""What git would do for an action, in words, before anybody confirms it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harnesslab.server.core.labs import Lab
from harnesslab.server.core.refs import find_candidate, resolve
from harnesslab.server.core.text import clip
from harnesslab.server.problems import Problem
from harnesslab.store import Candidate
from harnesslab.store.git import GitFailed
from harnesslab.store.objects import Commit, read_commits
from harnesslab.store.refs import FOLDERS, NOTES

OPEN = ("pending", "undecided")
ACTIONS = ("accept", "reject", "override", "rollback", "retry", "undo")


@dataclass(frozen=True)
class Plan:
    """What would be done (or, where it is not allowed, why not), and the state of the lab that it rests on."""

    action: str
    ref: str
    commit: str
    baseline: str
    steps: list[str]
    allowed: bool = True
    needs_why: bool = False
    undo: str | None = None
    candidate: Candidate | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The plan as the browser gets it."""
        return {
            "action": self.action,
            "ref": self.ref,
            "allowed": self.allowed,
            "steps": self.steps,
            "needs_why": self.needs_why,
            "undo": self.undo,
            "expect": {"baseline": self.baseline, "ref": self.commit},
        }


def plan(lab: Lab, action: str, ref: str) -> Plan:
    """The plan of one action on one ref; `Problem` where the ref is not there."""
    repo = lab.writable()
    baseline = repo.baseline()
    candidate = find_candidate(lab, ref)
    if candidate is None:
        commit = resolve(lab, ref)
        if action == "rollback":
            return _rollback(lab, ref, commit, baseline)
        if action == "undo" and commit.id == baseline and commit.meta.get("rollback_to"):
            return _undo_rollback(ref, commit)
        raise Problem("refused", f"{ref[:80]!r} is not a candidate, so it cannot be taken for '{action}'.")
    if action == "rollback":
        return _rollback(lab, candidate.ref, resolve(lab, candidate.commit), baseline)
    if action == "undo":
        return _undo(lab, candidate, baseline)
    return _PLANS[action](lab, candidate, baseline)


def possible_actions(lab: Lab, candidate: Candidate) -> list[str]:
    """The actions that make sense for a candidate now; the plan of each says the rest."""
    actions = {
        "pending": ["accept", "reject"],
        "undecided": ["accept", "reject", "undo"],
        "rejected": ["override", "retry", "undo"],
        "promoted": ["undo"] if candidate.commit == lab.writable().baseline() else [],
    }[candidate.state]
    if candidate.state in OPEN and candidate.parent != lab.writable().baseline():
        actions = [*actions, "retry"]
    return actions + possible_rollback(lab, candidate.commit) if candidate.state == "promoted" else actions


def possible_rollback(lab: Lab, commit: str) -> list[str]:
    """`rollback` for an earlier commit of the baseline's history, nothing for any other."""
    if lab.repo is None:
        return []
    baseline = lab.repo.baseline()
    return ["rollback"] if commit != baseline and _is_ancestor(lab, commit, baseline) else []


def _accept(lab: Lab, candidate: Candidate, baseline: str) -> Plan:
    if candidate.state not in OPEN:
        return _refuse("accept", candidate, baseline, f"It is {candidate.state} already.")
    if candidate.parent != baseline:
        return _moved("accept", candidate, baseline)
    steps = [*_promotion(candidate, baseline), _record(), *_left_alone(lab)]
    return _of("accept", candidate, baseline, steps, needs_why=True, undo=_UNDO_PROMOTION)


def _reject(lab: Lab, candidate: Candidate, baseline: str) -> Plan:
    if candidate.state not in OPEN:
        return _refuse("reject", candidate, baseline, f"It is {candidate.state} already.")
    steps = [_move(candidate, "rejected"), _record(), "Leave the baseline as it is."]
    undo = "It can be undone: the candidate becomes pending again."
    return _of("reject", candidate, baseline, steps, needs_why=True, undo=undo)


def _override(lab: Lab, candidate: Candidate, baseline: str) -> Plan:
    if candidate.state != "rejected":
        return _refuse("override", candidate, baseline, f"It is {candidate.state}; only a rejection can be overridden.")
    if candidate.parent != baseline:
        return _moved("override", candidate, baseline)
    steps = [
        *_promotion(candidate, baseline),
        f"Record an override of the verdict, with your name and reason, in {NOTES}; the verdict itself is kept beside it.",
        *_left_alone(lab),
    ]
    return _of("override", candidate, baseline, steps, needs_why=True, undo=_UNDO_PROMOTION)


def _retry(lab: Lab, candidate: Candidate, baseline: str) -> Plan:
    if candidate.state == "promoted":
        return _refuse("retry", candidate, baseline, "It was promoted; there is nothing to retry.")
    steps = [
        f"Merge the change of {_short(candidate.commit)} into the baseline {_short(baseline)} (three-way, without a checkout).",
        f"Make a new candidate of it under {FOLDERS['pending']}; where the change does not fit, show the conflict and change nothing.",
        f"Leave {candidate.ref} as it is.",
    ]
    return _of("retry", candidate, baseline, steps, undo="The new candidate can be rejected.")


def _undo(lab: Lab, candidate: Candidate, baseline: str) -> Plan:
    if candidate.state == "pending":
        return _refuse("undo", candidate, baseline, "It was not decided yet.")
    steps = ["Take the last decision on it back; the decision stays on record under 'undone'."]
    if candidate.state == "promoted":
        if candidate.commit != baseline:
            why = "It is no longer the newest promotion; roll the baseline back instead."
            return _refuse("undo", candidate, baseline, why)
        steps.insert(0, f"Move refs/heads/main back from {_short(baseline)} to {_short(candidate.parent)}.")
        steps += _left_alone(lab)
    return _of("undo", candidate, baseline, steps, undo="It can be decided again.")


def _rollback(lab: Lab, ref: str, commit: Commit, baseline: str) -> Plan:
    def refuse(why: str) -> Plan:
        return Plan("rollback", ref, commit.id, baseline, [why], allowed=False)

    if not _is_ancestor(lab, commit.id, baseline):
        return refuse(f"Commit {_short(commit.id)} is not in the baseline's history.")
    if read_commits(lab.git, [baseline])[0].tree == commit.tree:
        return refuse("The baseline has exactly these files already.")
    steps = [
        f"Make a new commit on refs/heads/main with the files of {_short(commit.id)} (“{clip(commit.subject, 100)}”).",
        "Keep every commit and ref; nothing is lost.",
        *_left_alone(lab),
    ]
    undo = "It can be undone by another new commit that brings today's files back."
    return Plan("rollback", ref, commit.id, baseline, steps, needs_why=True, undo=undo)


def _undo_rollback(ref: str, commit: Commit) -> Plan:
    before = commit.parents[0]
    steps = [
        f"Make a new commit on refs/heads/main with the files of {_short(before)}, which the rollback replaced.",
        "Keep every commit and ref; nothing is lost.",
    ]
    return Plan("undo", ref, commit.id, commit.id, steps, undo="It can be undone in the same way.")


_PLANS: dict[str, Callable[[Lab, Candidate, str], Plan]] = {
    "accept": _accept,
    "reject": _reject,
    "override": _override,
    "retry": _retry,
}
_UNDO_PROMOTION = "It can be undone as long as nothing else is promoted; later the baseline can be rolled back."


def _of(
    action: str,
    candidate: Candidate,
    baseline: str,
    steps: list[str],
    *,
    needs_why: bool = False,
    undo: str | None = None,
) -> Plan:
    return Plan(action, candidate.ref, candidate.commit, baseline, steps, True, needs_why, undo, candidate)


def _refuse(action: str, candidate: Candidate, baseline: str, why: str) -> Plan:
    return Plan(action, candidate.ref, candidate.commit, baseline, [why], allowed=False, candidate=candidate)


def _moved(action: str, candidate: Candidate, baseline: str) -> Plan:
    why = (
        f"It was made on {_short(candidate.parent)}, but the baseline is {_short(baseline)} now, so no fast-forward is "
        "possible. Retry it on today's baseline."
    )
    return _refuse(action, candidate, baseline, why)


def _promotion(candidate: Candidate, baseline: str) -> list[str]:
    return [
        f"Fast-forward refs/heads/main from {_short(baseline)} to {_short(candidate.commit)} (“{clip(candidate.subject, 100)}”).",
        _move(candidate, "promoted"),
    ]


def _move(candidate: Candidate, state: str) -> str:
    target = FOLDERS[state] + candidate.id  # type: ignore[index]
    return f"Move {candidate.ref} to {target}."


def _record() -> str:
    return f"Record the verdict, with your name and reason, in {NOTES}."


def _left_alone(lab: Lab) -> list[str]:
    edited = lab.writable().dirty()
    if not edited:
        return []
    names = ", ".join(clip(path, 100) for path in edited[:5]) + (", …" if len(edited) > 5 else "")
    return [f"Leave the files that you have edited as they are: {names}."]


def _is_ancestor(lab: Lab, old: str, new: str) -> bool:
    try:
        lab.git.run("merge-base", "--is-ancestor", old, new)
    except GitFailed as error:
        if error.code == 1:
            return False
        raise
    return True


def _short(commit: str) -> str:
    return commit[:10]
