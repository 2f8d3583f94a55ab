"""Verdicts and states: promote, reject, shelve, undo, override."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from harnesslab.errors import StoreError
from harnesslab.store import LabRepo

Run = Callable[..., str]


def test_reject_keeps_the_commit_and_the_verdict_is_a_readable_note(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    baseline = repo.baseline()
    decision = repo.reject(candidate.id, {"reason": "schlechter: ä", "delta": -2, "decided_by": "StrictPareto"})
    assert decision.state == "rejected" and decision.baseline == baseline == repo.baseline()
    assert git("for-each-ref", "--format=%(refname)", "refs/harnesslab") == f"refs/harnesslab/rejected/{candidate.id}"
    note = json.loads(git("notes", "--ref=harnesslab", "show", candidate.commit))
    assert note["reason"] == "schlechter: ä" and note["state"] == "rejected"
    assert repo.verdict(candidate.commit) == note
    row = repo.candidates(state="rejected").rows[0]
    assert (row.reason, row.delta, row.decided_by) == ("schlechter: ä", -2.0, "StrictPareto")


def test_notes_written_by_git_itself_are_found_and_replaced(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    git("notes", "--ref=harnesslab", "add", "-m", '{"state":"undecided","reason":"by hand"}', candidate.commit)
    assert repo.candidates().rows[0].state == "undecided" and repo.candidate(candidate.id).reason == "by hand"
    repo.reject(candidate.id, {"reason": "ours"})
    assert json.loads(git("notes", "--ref=harnesslab", "show", candidate.commit))["reason"] == "ours"
    assert repo.candidates().rows[0].reason == "ours"


def test_a_note_that_is_no_json_is_no_verdict(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    git("notes", "--ref=harnesslab", "add", "-m", "just words", candidate.commit)
    assert repo.verdict(candidate.commit) is None and repo.candidates().rows[0].state == "pending"


def test_shelved_is_undecided_and_can_still_be_decided(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    repo.shelve(candidate.id, {"reason": "too noisy"})
    assert repo.counts() == {"undecided": 1} and repo.candidate(candidate.id).state == "undecided"
    repo.promote(candidate.id, {"reason": "more repeats"})
    verdict = repo.verdict(candidate.commit)
    assert verdict is not None and verdict["history"][0]["reason"] == "too noisy"
    assert repo.counts() == {"promoted": 1}


def test_a_decided_candidate_is_not_decided_again(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    repo.reject(candidate.id, {})
    for again in (repo.promote, repo.reject, repo.shelve):
        with pytest.raises(StoreError, match="rejected already"):
            again(candidate.id, {})
    for name in ("nothing", "0" * 12, "../../heads/main"):
        with pytest.raises(StoreError, match=r"candidate"):
            repo.reject(name, {})


def test_undo_of_a_rejection_keeps_it_on_record(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    repo.reject(candidate.id, {"reason": "hasty"})
    assert repo.undo(candidate.id).state == "pending"
    assert repo.candidate(candidate.id).state == "pending" and repo.verdict(candidate.commit) is None
    with pytest.raises(StoreError, match="nothing to undo"):
        repo.undo(candidate.id)
    repo.promote(candidate.id, {"reason": "second look"})
    verdict = repo.verdict(candidate.commit)
    assert verdict is not None and verdict["undone"][0]["reason"] == "hasty"


def test_undo_of_a_promotion_while_it_is_the_baseline(repo: LabRepo) -> None:
    first = repo.baseline()
    one = repo.propose({"a": "1"}, "one")
    repo.promote(one.id, {})
    decision = repo.undo(one.id)
    assert decision.baseline == repo.baseline() == first and not (repo.path / "a").exists() and repo.dirty() == []
    repo.promote(one.id, {})
    two = repo.propose({"b": "1"}, "two")
    repo.promote(two.id, {})
    with pytest.raises(StoreError, match="roll the baseline back"):
        repo.undo(one.id)


def test_undo_returns_to_undecided(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    repo.shelve(candidate.id, {"reason": "noise"})
    repo.reject(candidate.id, {"reason": "enough"})
    assert repo.undo(candidate.id).state == "undecided"
    assert repo.candidate(candidate.id).reason == "noise"
    assert repo.undo(candidate.id).state == "pending"


def test_override_is_recorded_beside_what_it_overrides(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    repo.reject(
        candidate.id, {"reason": "loses t3", "decided_by": "StrictPareto", "delta": -1, "flips": {"t3": "lost"}}
    )
    decision = repo.override(candidate.id, "promote", "Änne", "t3 is broken")
    assert decision.baseline == candidate.commit == repo.baseline()
    verdict = repo.verdict(candidate.commit)
    assert verdict is not None and verdict["override"] is True and verdict["overrides"] == "rejected"
    assert (verdict["decided_by"], verdict["who"]) == ("person", "Änne") and verdict["flips"] == {"t3": "lost"}
    assert verdict["history"][0]["decided_by"] == "StrictPareto"
    assert repo.undo(candidate.id).state == "rejected"
    assert repo.candidate(candidate.id).reason == "loses t3"


def test_override_needs_who_why_and_something_to_override(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    with pytest.raises(StoreError, match="who"):
        repo.override(candidate.id, "promote", "", "why")
    with pytest.raises(StoreError, match="promote"):
        repo.override(candidate.id, "delete", "me", "why")
    repo.override(candidate.id, "reject", "me", "why")
    with pytest.raises(StoreError, match="already"):
        repo.override(candidate.id, "reject", "me", "why")


def test_a_verdict_with_nan_is_refused_before_anything_moves(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    with pytest.raises(StoreError, match="JSON"):
        repo.promote(candidate.id, {"delta": float("nan")})
    assert repo.candidate(candidate.id).state == "pending" and repo.baseline() == candidate.parent
