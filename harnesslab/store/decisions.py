"""Acting on candidates: promote, reject, shelve, undo, override, roll back, retry.

Each is one transaction over refs (see `moves`), under the lab's lock, with the verdict in it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harnesslab.errors import BaselineMoved, StoreError
from harnesslab.store.candidates import build
from harnesslab.store.core import Core, Place
from harnesslab.store.git import GitFailed
from harnesslab.store.moves import RefMove
from harnesslab.store.notes import read_note, write_note
from harnesslab.store.objects import Commit, read_commits, write_commit
from harnesslab.store.refs import BASELINE, FOLDERS, NOTES, STATES, State


@dataclass(frozen=True)
class Decision:
    """What was done: the candidate's new state, the baseline after it, and the files of the checkout that
    were left as they were because a person had changed them (`left`)."""

    id: str
    commit: str
    state: State
    baseline: str
    left: tuple[str, ...] = ()


def decide(
    core: Core, candidate_id: str, state: Literal["promoted", "rejected", "undecided"], verdict: Mapping[str, Any]
) -> Decision:
    """Judge a candidate that is pending or undecided."""
    with core.writing(f"record '{state}' for {candidate_id}"):
        place = core.locate(candidate_id)
        if place.folder != "pending":
            raise StoreError(
                f"Candidate {candidate_id} is {place.folder} already; undo that, override it, or retry it anew."
            )
        return _settle(core, place, state, _note(core, place, state, verdict))


def override(core: Core, candidate_id: str, decision: str, who: str, why: str) -> Decision:
    """A person decides against the recorded verdict; kept as an override beside what it overrides."""
    state: Literal["promoted", "rejected"]
    if decision in ("promote", "promoted", "accept"):
        state = "promoted"
    elif decision in ("reject", "rejected"):
        state = "rejected"
    else:
        raise StoreError(f"An override can 'promote' or 'reject', not {decision!r}.")
    if not who.strip() or not why.strip():
        raise StoreError("An override needs who decided and why.")
    with core.writing(f"override the verdict of {candidate_id}"):
        place = core.locate(candidate_id)
        if place.folder == state:
            raise StoreError(f"Candidate {candidate_id} is {state} already.")
        if place.folder == "promoted":
            raise StoreError(
                f"Candidate {candidate_id} is part of the baseline's history; undo it, or roll the baseline back."
            )
        before = read_note(core.git, place.notes, place.commit) or {}
        kept = {key: value for key, value in before.items() if key not in ("history", "undone", "state")}
        choice = "promote" if state == "promoted" else "reject"
        verdict = {**kept, "override": True, "overrides": _state_of(place, before), "decision": choice}
        verdict |= {"decided_by": "person", "who": who, "why": why, "reason": why}
        verdict["decided_at"] = time.time()
        return _settle(core, place, state, _note(core, place, state, verdict))


def undo(core: Core, candidate_id: str) -> Decision:
    """Take the last decision on a candidate back; the decision itself stays on record under 'undone'."""
    with core.writing(f"undo the decision on {candidate_id}"):
        place = core.locate(candidate_id)
        note = read_note(core.git, place.notes, place.commit) or {}
        if place.folder == "pending" and _state_of(place, note) == "pending":
            raise StoreError(f"Candidate {candidate_id} was not decided yet; there is nothing to undo.")
        if place.folder == "promoted" and place.baseline != place.commit:
            raise StoreError(
                f"Candidate {candidate_id} is no longer the newest promotion, so it cannot be undone; "
                "roll the baseline back instead."
            )
        history = list(note.get("history", []))
        current = {key: value for key, value in note.items() if key not in ("history", "undone")}
        earlier = dict(history.pop()) if history else {"state": "pending"}
        restored: State = next((state for state in STATES if state == earlier.get("state")), "pending")
        earlier |= {"id": candidate_id, "state": restored, "undone": [*note.get("undone", []), current]}
        if history:
            earlier["history"] = history
        return _settle(core, place, restored, earlier)


def rollback(core: Core, commit: str, who: str | None, why: str) -> Decision:
    """A new commit on the baseline with the files of an earlier one; nothing is lost."""
    with core.writing(f"roll the baseline back to {commit[:10]}"):
        baseline = core.baseline()
        now, then = commit_of(core, baseline), commit_of(core, commit)
        if not _is_ancestor(core, commit, baseline):
            raise StoreError(
                f"Commit {commit[:10]} is not in the baseline's history, so the baseline cannot go back to it."
            )
        if then.tree == now.tree:
            raise StoreError(f"The baseline has exactly the files of {commit[:10]} already.")
        message = f"Roll back to {then.subject}\n\nThe files of commit {commit}." + (f"\n{why}" if why else "")
        meta = {"rollback_to": commit, "decided_by": who, "reason": why}
        new = write_commit(core.git, then.tree, (baseline,), message, meta)
        left = core.move([RefMove(BASELINE, baseline, new)], f"roll back to {commit[:10]}")
        return Decision("", new, "promoted", new, left)


def _settle(core: Core, place: Place, state: State, note: Mapping[str, Any]) -> Decision:
    moves: list[RefMove] = []
    baseline = place.baseline
    commit = commit_of(core, place.commit)
    if state == "promoted" or place.folder == "promoted":
        parents = commit.parents
        if state == "promoted" and parents != (place.baseline,):
            raise BaselineMoved(
                f"Candidate {place.id} was made on {parents[0][:10] if parents else 'nothing'}, but the baseline is "
                f"{place.baseline[:10]} now; retry it on today's baseline."
            )
        baseline = place.commit if state == "promoted" else parents[0]
        moves.append(RefMove(BASELINE, place.baseline, baseline))
    source, target = FOLDERS[place.folder] + place.id, FOLDERS[state] + place.id
    if source != target:
        moves.append(RefMove(target, None, place.commit))
    notes = write_note(core.git, place.notes, place.commit, note, f"{state}: {place.id}")
    moves.append(RefMove(NOTES, place.notes, notes))
    if source != target:
        moves.append(RefMove(source, place.commit, None))
    indexed = core.index.is_current()
    left = core.move(moves, f"{state} {place.id}")
    if indexed:
        core.index.learn(build(place.id, state, commit, note), notes)
    return Decision(place.id, place.commit, state, baseline, left)


def _note(core: Core, place: Place, state: State, verdict: Mapping[str, Any]) -> dict[str, Any]:
    before = read_note(core.git, place.notes, place.commit)
    note: dict[str, Any] = {key: value for key, value in verdict.items() if key not in ("history", "undone")}
    note |= {"id": place.id, "state": state}
    note.setdefault("decided_at", time.time())
    if before:
        if before.get("state") != "pending":
            last = {key: value for key, value in before.items() if key not in ("history", "undone")}
            note["history"] = [*before.get("history", []), last]
        if before.get("undone"):
            note["undone"] = before["undone"]
    return note


def _state_of(place: Place, note: Mapping[str, Any]) -> State:
    if place.folder != "pending":
        return place.folder
    return "undecided" if note.get("state") == "undecided" else "pending"


def commit_of(core: Core, commit: str) -> Commit:
    """Read one commit; `StoreError` if it is not there."""
    found = read_commits(core.git, [commit])
    if not found:
        raise StoreError(f"Commit {commit[:10]} is not in {core.path}; the repository may be damaged (run `git fsck`).")
    return found[0]


def _is_ancestor(core: Core, old: str, new: str) -> bool:
    try:
        core.git.run("merge-base", "--is-ancestor", old, new)
    except GitFailed as error:
        if error.code == 1:
            return False
        raise
    return True
