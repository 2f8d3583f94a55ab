"""Doing what a plan says, if the lab is still as the plan saw it."""

from __future__ import annotations

import contextlib
from typing import Any

from harnesslab.analysis.learning import learning_text
from harnesslab.errors import BaselineMoved
from harnesslab.server.core.labs import Lab
from harnesslab.server.core.plans import Plan, plan
from harnesslab.server.problems import Problem
from harnesslab.store import Candidate, LabRepo, RetryConflict
from harnesslab.store.lock import LabLock
from harnesslab.trainer.decide import unmeasured
from harnesslab.trainer.verdict import Choice, Verdict

LOCK_WAIT_S = 2.0
"""A person in front of a browser gets the owner's name sooner than a training run would."""


def act(lab: Lab, action: str, ref: str, expect: dict[str, str], who: str, why: str) -> dict[str, Any]:
    """Do one action under the lab's lock. `expect`: the commits of baseline and ref that the person has seen.

    Raises BaselineMoved when the lab has changed since, LabLocked, StoreError, Problem.
    """
    repo = lab.writable()
    lock = LabLock(repo.git_dir / "harnesslab")
    with lock.hold(f"{action} {ref} from the sidebar", wait=LOCK_WAIT_S):
        now = plan(lab, action, ref)
        if now.baseline != expect["baseline"] or now.commit != expect["ref"]:
            raise BaselineMoved("The lab has changed since you looked at it; look again, then decide.")
        if not now.allowed:
            raise Problem("refused", " ".join(now.steps))
        if now.needs_why and not why.strip():
            raise Problem("bad_request", "A decision needs a reason; say why in a few words.")
        done = _DO[action](repo, now, who, why.strip())
    _write_learning(lab, repo)
    return done


def _accept(repo: LabRepo, plan: Plan, who: str, why: str) -> dict[str, Any]:
    candidate = _candidate(plan)
    decision = repo.promote(candidate.id, _verdict(candidate, "promote", who, why))
    left = f" Left as you edited them: {', '.join(decision.left[:5])}." if decision.left else ""
    return _done(f"{candidate.subject} is the baseline now.{left}", repo.candidate(candidate.id).ref, True)


def _reject(repo: LabRepo, plan: Plan, who: str, why: str) -> dict[str, Any]:
    candidate = _candidate(plan)
    repo.reject(candidate.id, _verdict(candidate, "reject", who, why))
    return _done(f"{candidate.subject} was rejected.", repo.candidate(candidate.id).ref, True)


def _override(repo: LabRepo, plan: Plan, who: str, why: str) -> dict[str, Any]:
    candidate = _candidate(plan)
    repo.override(candidate.id, "promote", who, why)
    return _done(f"{candidate.subject} is the baseline now, by override.", repo.candidate(candidate.id).ref, True)


def _rollback(repo: LabRepo, plan: Plan, who: str, why: str) -> dict[str, Any]:
    decision = repo.rollback(plan.commit, who, why)
    return _done(f"The baseline has the files of {plan.commit[:10]} again.", decision.commit, True)


def _retry(repo: LabRepo, plan: Plan, who: str, why: str) -> dict[str, Any]:
    try:
        fresh = repo.retry(_candidate(plan).id)
    except RetryConflict as error:
        shown = "\n\n".join(f"{path}:\n{text[:2000]}" for path, text in list(error.texts.items())[:3])
        raise Problem("conflict", f"{error}\n\n{shown}".strip()) from None
    return _done(f"{fresh.subject} is a new candidate on today's baseline.", fresh.ref, False)


def _undo(repo: LabRepo, plan: Plan, who: str, why: str) -> dict[str, Any]:
    if plan.candidate is None:  # a rollback
        before = repo.history(limit=1)[0].parent or ""
        decision = repo.rollback(before, who, why or "undo the rollback")
        return _done("The rollback was undone by a new commit.", decision.commit, True)
    repo.undo(plan.candidate.id)
    again = repo.candidate(plan.candidate.id)
    return _done(f"The decision on {again.subject} was taken back; it is {again.state} now.", again.ref, False)


_DO = {
    "accept": _accept,
    "reject": _reject,
    "override": _override,
    "rollback": _rollback,
    "retry": _retry,
    "undo": _undo,
}


def _candidate(plan: Plan) -> Candidate:
    if plan.candidate is None:
        raise Problem("refused", f"{plan.ref} is not a candidate.")
    return plan.candidate


def _done(message: str, ref: str, undo: bool) -> dict[str, Any]:
    return {"message": message, "ref": ref, "undo": ref if undo else None}


def _verdict(candidate: Candidate, decision: Choice, who: str, why: str) -> dict[str, Any]:
    """A person's verdict: on the measurement where there is one, else on nothing but their word."""
    with contextlib.suppress(KeyError, TypeError, ValueError, IndexError):  # a verdict that somebody else wrote
        if candidate.verdict is not None:
            return Verdict.from_json(candidate.verdict).by_person(decision, who, why).to_json()
    return unmeasured(candidate.parent, candidate.commit, decision, why, who).to_json()


def _write_learning(lab: Lab, repo: LabRepo) -> None:
    # The notebook does the same after each verdict; a folder that cannot be written is no error here either.
    text = learning_text(lab.folder.name, repo.candidates(limit=200).rows)
    with contextlib.suppress(OSError):
        (lab.folder / "learning.md").write_text(text, encoding="utf-8")
