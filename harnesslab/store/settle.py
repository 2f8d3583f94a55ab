"""One candidate's state, note and, where it is promoted, the baseline: moved together, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harnesslab.errors import BaselineMoved, StoreError
from harnesslab.redaction import scrub_json
from harnesslab.store.candidates import build
from harnesslab.store.core import Core
from harnesslab.store.git import GitFailed
from harnesslab.store.moves import RefMove
from harnesslab.store.notes import write_note
from harnesslab.store.objects import write_commit
from harnesslab.store.refs import BASELINE, FOLDERS, NOTES, State
from harnesslab.store.repository import commit_of


@dataclass(frozen=True)
class Settled:
    """What was moved: the candidate's new state, the baseline after it, and the files of the checkout that were left
    as they were because a person had changed them (`left`)."""

    id: str
    commit: str
    state: State
    baseline: str
    left: tuple[str, ...] = ()


def settle(core: Core, candidate_id: str, state: State, note: Mapping[str, Any]) -> Settled:
    """Bring a candidate into a state and write its note. Into `promoted` the baseline follows, out of it goes back."""
    note = scrub_json(dict(note))  # git and the index get the same
    with core.writing(f"{state} {candidate_id}"):
        place = core.locate(candidate_id)
        moves: list[RefMove] = []
        baseline = place.baseline
        commit = commit_of(core.git, place.commit)
        if (state == "promoted") != (place.folder == "promoted"):
            parent = commit.base
            before, after = (parent, commit.id) if state == "promoted" else (commit.id, parent)
            if before != baseline:
                raise BaselineMoved(
                    f"Candidate {place.id} needs the baseline {before[:10] or 'of nothing'}, but it is {baseline[:10]}."
                )
            if commit.base not in commit.parents and not _follows(core, commit.base, commit.id):
                raise StoreError(
                    f"Candidate {place.id} does not come after the commit {commit.base[:10]} that it names as its base."
                )
            baseline = after
            moves.append(RefMove(BASELINE, before, after))
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
        return Settled(place.id, place.commit, state, baseline, left)


def _follows(core: Core, old: str, new: str) -> bool:
    try:
        core.git.run("merge-base", "--is-ancestor", old, new)
    except GitFailed:
        return False
    return True


def restore(core: Core, commit: str, message: str, meta: Mapping[str, Any]) -> Settled:
    """A new commit on the baseline with the files of `commit`; its meta data names it as `rollback_to`."""
    with core.writing(f"go back to {commit[:10]}"):
        baseline = core.baseline()
        tree = commit_of(core.git, commit).tree
        new = write_commit(core.git, tree, (baseline,), message, {"rollback_to": commit, **meta})
        left = core.move([RefMove(BASELINE, baseline, new)], f"roll back to {commit[:10]}")
        return Settled("", new, "promoted", new, left)
