"""The ledger of a lab: records verdicts, and does what a plan says, under the lab's lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harnesslab.errors import BaselineMoved, StoreError
from harnesslab.ledger.learning import write_learning
from harnesslab.ledger.plans import Plan, plan_candidate, plan_rollback, plan_undo_rollback
from harnesslab.ledger.rules import reason_given, refusal
from harnesslab.ledger.verdict import Verdict, persons_verdict
from harnesslab.ledger.words import ACTS, DECIDED, OPEN, OUTCOME, Act, Choice
from harnesslab.store import STATES, Candidate, Commit, LabRepo, Settled, State

Record = Verdict | Mapping[str, Any]
"""A verdict, or its JSON."""

_DECISION = ("decided_by", "who", "decided_at", "override", "overrides")
"""What a verdict says of its decision; a measured candidate has none yet."""


@dataclass(frozen=True)
class Done:
    """What an act did, in a sentence; ``ref`` is where the candidate is now (or the new commit), ``undo`` what to name
    in an ``undo`` to take it back."""

    message: str
    ref: str
    undo: str | None


@dataclass(frozen=True)
class LastDecision:
    """The newest decision that can be undone: in words, and the ref to name."""

    label: str
    ref: str


class Ledger:
    """What can be done with the candidates of a lab, and doing it.

    Every act is one transaction over refs and note. All raise StoreError in one sentence where the rules
    (:func:`~harnesslab.ledger.rules.refusal`) forbid it, BaselineMoved where the candidate was made on another
    baseline, and LabLocked.
    """

    def __init__(self, repo: LabRepo):
        self.repo = repo

    # -- verdicts -------------------------------------------------------------------------------------

    def measured(self, candidate_id: str, verdict: Record) -> None:
        """Put the verdict of a measurement on record; the candidate still waits for a decision.

        One that was decided on while it was measured stays as it is.
        """
        with self.repo.holding(f"record the measurement of {candidate_id}"):
            candidate = self.repo.candidate(candidate_id)
            if candidate.state in OPEN:
                note = {key: value for key, value in _json(verdict).items() if key not in _DECISION}
                self._settle(candidate, "measured", note)

    def promote(self, candidate_id: str, verdict: Record) -> Settled:
        """Fast-forward the baseline to the candidate; BaselineMoved if it was made on another baseline."""
        return self._decide("promote", candidate_id, verdict)

    def reject(self, candidate_id: str, verdict: Record) -> Settled:
        """Turn the candidate down; it stays reachable under `refs/harnesslab/rejected/` for ever."""
        return self._decide("reject", candidate_id, verdict)

    def shelve(self, candidate_id: str, verdict: Record) -> Settled:
        """Record that the measurement could not tell; the candidate can still be promoted or rejected."""
        return self._decide("shelve", candidate_id, verdict)

    def act_on(self, candidate_id: str, verdict: Verdict) -> Settled:
        """Promote, reject or shelve, as the verdict says."""
        return self._decide(_ACT[verdict.decision], candidate_id, verdict)

    def override(self, candidate_id: str, who: str, why: str) -> Settled:
        """Promote a rejected candidate against the verdict on record; recorded as an override, with who and why."""
        why = reason_given(why)
        if not who.strip():
            raise StoreError("An override needs the name of who decides.")
        with self.repo.holding(f"override the verdict of {candidate_id}"):
            candidate = self._allowed("override", candidate_id)
            verdict = persons_verdict(candidate, "promote", who, why)
            return self._settle(candidate, "promoted", _decided(verdict))

    def undo(self, candidate_id: str) -> Settled:
        """Take back the last decision on a candidate (a promotion only while it is the baseline).

        The candidate is again what it was before; the decision itself stays on record under 'undone'.
        """
        with self.repo.holding(f"undo the decision on {candidate_id}"):
            candidate = self._allowed("undo", candidate_id)
            note = self.repo.note(candidate.commit) or {}
            history = _list(note.get("history"))
            earlier = dict(history.pop()) if history else {"state": "pending"}
            restored: State = next((state for state in STATES if state == earlier.get("state")), "pending")
            earlier |= {"id": candidate.id, "state": restored, "undone": [*_list(note.get("undone")), _own(note)]}
            if history:
                earlier["history"] = history
            return self._done(self.repo.settle(candidate.id, restored, earlier))

    def retry(self, candidate_id: str) -> Candidate:
        """Re-apply a candidate's change on today's baseline as a new candidate; RetryConflict shows a conflict."""
        with self.repo.holding(f"retry {candidate_id}"):
            return self.repo.reapply(self._allowed("retry", candidate_id).id)

    def rollback(self, commit: str, who: str | None = None, why: str = "") -> Settled:
        """Go back to the files of an earlier baseline with a new commit; nothing is lost."""
        with self.repo.holding(f"roll the baseline back to {commit[:10]}"):
            then = self.repo.commit(commit)
            if (refused := self._rollback_refusal(then.id)) is not None:
                raise refused
            message = f"Roll back to {then.subject}\n\nThe files of commit {then.id}." + (f"\n{why}" if why else "")
            return self._done(self.repo.restore(then.id, message, {"decided_by": who, "reason": why}))

    # -- plans: what a person is asked to confirm ------------------------------------------------------

    def plan(self, act: Act, ref: str) -> Plan:
        """What an act on a ref (a full ref name or a commit) would do. Changes nothing."""
        if act not in ACTS:
            raise StoreError(f"There is no act {act!r}; there are {', '.join(ACTS)}.", cause="refused")
        baseline, edited = self.repo.baseline(), self.repo.dirty()
        candidate = self.repo.find(ref)
        if act == "rollback":
            commit = self.repo.commit(candidate.commit if candidate else ref)
            name = candidate.ref if candidate else ref
            return plan_rollback(name, commit, baseline, edited, self._rollback_refusal(commit.id))
        if candidate is not None:
            return plan_candidate(act, candidate, baseline, edited, refusal(act, candidate, baseline))
        commit = self.repo.commit(ref)
        if act == "undo" and commit.id == baseline and commit.meta.get("rollback_to"):
            return plan_undo_rollback(ref, commit)
        raise StoreError(f"{ref[:80]!r} is not a candidate, so there is nothing to {act}.", cause="refused")

    def possible(self, ref: str | Candidate) -> list[Act]:
        """The acts whose plans are allowed for a ref now."""
        candidate = self.repo.find(ref) if isinstance(ref, str) else ref
        baseline = self.repo.baseline()
        commit = candidate.commit if candidate is not None else self.repo.resolve(str(ref))
        acts: list[Act] = []
        if candidate is not None:
            acts = [act for act in ACTS if act != "rollback" and refusal(act, candidate, baseline) is None]
        going_back = commit != baseline and (candidate is None or candidate.state == "promoted")
        return [*acts, "rollback"] if going_back and self._rollback_refusal(commit) is None else acts

    def carry_out(
        self, act: Act, ref: str, who: str, why: str = "", *, seen: tuple[str, str] | None = None, wait: float = 10.0
    ) -> Done:
        """Do what :meth:`plan` says, for a person. ``seen``: the commits of baseline and ref that they saw.

        Raises BaselineMoved when the lab has changed since, ConfigError without a reason where one is needed,
        LabLocked after ``wait`` seconds, RetryConflict, StoreError.
        """
        with self.repo.holding(f"{act} {ref}", wait=wait):
            now = self.plan(act, ref)
            if seen is not None and seen != (now.baseline, now.commit):
                raise BaselineMoved("The lab has changed since you looked at it; look again, then decide.")
            if now.refused is not None:
                # To whoever confirms, a candidate of an earlier baseline is refused; 'moved' would ask to look again.
                raise StoreError(str(now.refused), cause="refused")
            return _DO[act](self, now, who, reason_given(why) if now.needs_why else why.strip())

    def last_decision(self) -> LastDecision | None:
        """The newest decision on a candidate, or the rollback after it; None where git does not allow to undo it."""
        newest = self._newest()
        if isinstance(newest, Commit):
            return LastDecision(newest.subject, newest.id)
        if newest is None or refusal("undo", newest, self.repo.baseline()) is not None:
            return None
        return LastDecision(f"{newest.meta.get('name') or newest.subject} ({newest.state})", newest.ref)

    def undo_last(self, who: str) -> Done:
        """Take back the newest decision on a candidate, or the rollback after it; StoreError where nothing was decided."""
        with self.repo.holding("undo the last decision"):
            newest = self._newest()
            if newest is None:
                raise StoreError("Nothing was decided yet, so there is nothing to undo.", cause="refused")
            return self.carry_out("undo", newest.id if isinstance(newest, Commit) else newest.ref, who)

    # -- inside ---------------------------------------------------------------------------------------

    def _newest(self) -> Candidate | Commit | None:
        """The candidate that was decided on last, or the rollback after it."""
        newest = self.repo.candidates(state=DECIDED, order="decided", limit=1).rows
        head = self.repo.commit(self.repo.baseline())
        if head.meta.get("rollback_to") and (not newest or head.created >= int(newest[0].decided_at or 0)):
            return head
        return newest[0] if newest else None

    def _allowed(self, act: Act, candidate_id: str) -> Candidate:
        candidate = self.repo.candidate(candidate_id)
        refused = refusal(act, candidate, self.repo.baseline())
        if refused is not None:
            raise refused
        return candidate

    def _decide(self, act: Act, candidate_id: str, verdict: Record) -> Settled:
        with self.repo.holding(f"{act} {candidate_id}"):
            return self._settle(self._allowed(act, candidate_id), OUTCOME[_CHOICE[act]], _decided(verdict))

    def _settle(self, candidate: Candidate, state: State, verdict: Mapping[str, Any]) -> Settled:
        before = self.repo.note(candidate.commit) or {}
        note = _own(verdict) | {"id": candidate.id, "state": state}
        history = _list(before.get("history"))
        if before.get("state", "pending") != "pending" and (before["state"], state) != ("measured", "measured"):
            history.append(_own(before))
        if history:
            note["history"] = history
        if before.get("undone"):
            note["undone"] = before["undone"]
        return self._done(self.repo.settle(candidate.id, state, note))

    def _done(self, settled: Settled) -> Settled:
        write_learning(self.repo)
        return settled

    def _rollback_refusal(self, commit: str) -> StoreError | None:
        baseline = self.repo.baseline()
        if not self.repo.is_ancestor(commit, baseline):
            why = f"Commit {commit[:10]} is not in the baseline's history, so the baseline cannot go back to it."
        elif self.repo.commit(commit).tree == self.repo.commit(baseline).tree:
            why = f"The baseline has exactly these files already, those of {commit[:10]}."
        else:
            return None
        return StoreError(why, cause="refused")

    # -- acts of a person, by plan ---------------------------------------------------------------------

    def _by_person(self, plan: Plan, who: str, why: str) -> Done:
        candidate, act = _candidate(plan), plan.act
        verdict = persons_verdict(candidate, _CHOICE[act], who, why)
        settled = self._decide(act, candidate.id, verdict)
        return _said(f"{candidate.subject} {_BECAME[act]}.", settled, self.repo)

    def _override(self, plan: Plan, who: str, why: str) -> Done:
        candidate = _candidate(plan)
        return _said(
            f"{candidate.subject} is the baseline now, by override.", self.override(candidate.id, who, why), self.repo
        )

    def _rollback(self, plan: Plan, who: str, why: str) -> Done:
        commit = self.rollback(plan.commit, who, why).commit
        return Done(f"The baseline has the files of {plan.commit[:10]} again.", commit, commit)

    def _retry(self, plan: Plan, who: str, why: str) -> Done:
        fresh = self.retry(_candidate(plan).id)
        return Done(f"{fresh.subject} is a new candidate on today's baseline.", fresh.ref, None)

    def _undo(self, plan: Plan, who: str, why: str) -> Done:
        if plan.candidate is None:  # a rollback
            commit = self.rollback(self.repo.commit(plan.commit).parents[0], who, why or "undo the rollback").commit
            return Done("The rollback was undone by a new commit.", commit, commit)
        self.undo(plan.candidate.id)
        again = self.repo.candidate(plan.candidate.id)
        return Done(f"The decision on {again.subject} was undone; it is {again.state} now.", again.ref, None)


_CHOICE: dict[Act, Choice] = {"promote": "promote", "reject": "reject", "shelve": "undecided"}
_ACT: dict[Choice, Act] = {"promote": "promote", "reject": "reject", "undecided": "shelve"}
_BECAME: dict[Act, str] = {"promote": "is the baseline now", "reject": "was rejected", "shelve": "was shelved"}
_DO: dict[Act, Callable[[Ledger, Plan, str, str], Done]] = {
    "promote": Ledger._by_person,
    "reject": Ledger._by_person,
    "shelve": Ledger._by_person,
    "override": Ledger._override,
    "undo": Ledger._undo,
    "retry": Ledger._retry,
    "rollback": Ledger._rollback,
}


def _candidate(plan: Plan) -> Candidate:
    if plan.candidate is None:
        raise StoreError(f"{plan.ref} is not a candidate.", cause="refused")
    return plan.candidate


def _said(message: str, settled: Settled, repo: LabRepo) -> Done:
    left = f" Left as you edited them: {', '.join(settled.left[:5])}." if settled.left else ""
    ref = repo.candidate(settled.id).ref
    return Done(message + left, ref, ref)


def _decided(verdict: Record) -> dict[str, Any]:
    return _json(verdict) | {"decided_at": time.time()}


def _json(verdict: Record) -> dict[str, Any]:
    return verdict.to_json() if isinstance(verdict, Verdict) else dict(verdict)


def _own(note: Mapping[str, Any]) -> dict[str, Any]:
    """A note without what came before it."""
    return {key: value for key, value in note.items() if key not in ("history", "undone")}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else []
