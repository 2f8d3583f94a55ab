"""Verdicts and states: promote, reject, shelve, undo, override."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harnesslab.errors import ConfigError, StoreError
from harnesslab.ledger import (
    ACTS,
    OUTCOME,
    Act,
    Choice,
    Decider,
    Flip,
    Ledger,
    Verdict,
    persons_verdict,
    solved_counts,
    who_decided,
)
from harnesslab.store import Candidate, LabRepo, State

Run = Callable[..., str]


def test_reject_keeps_the_commit_and_the_verdict_is_a_readable_note(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    baseline = repo.baseline()
    decision = Ledger(repo).reject(candidate.id, {"reason": "schlechter: ä", "delta": -2, "decided_by": "StrictPareto"})
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
    Ledger(repo).reject(candidate.id, {"reason": "ours"})
    assert json.loads(git("notes", "--ref=harnesslab", "show", candidate.commit))["reason"] == "ours"
    assert repo.candidates().rows[0].reason == "ours"


def test_a_note_that_is_no_json_is_no_verdict(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    git("notes", "--ref=harnesslab", "add", "-m", "just words", candidate.commit)
    assert repo.verdict(candidate.commit) is None and repo.candidates().rows[0].state == "pending"


def test_shelved_is_undecided_and_can_still_be_decided(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    Ledger(repo).shelve(candidate.id, {"reason": "too noisy"})
    assert repo.counts() == {"undecided": 1} and repo.candidate(candidate.id).state == "undecided"
    Ledger(repo).promote(candidate.id, {"reason": "more repeats"})
    verdict = repo.verdict(candidate.commit)
    assert verdict is not None and verdict["history"][0]["reason"] == "too noisy"
    assert repo.counts() == {"promoted": 1}


def test_a_decided_candidate_is_not_decided_again(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    Ledger(repo).reject(candidate.id, {})
    for again in (Ledger(repo).promote, Ledger(repo).reject, Ledger(repo).shelve):
        with pytest.raises(StoreError, match="rejected already"):
            again(candidate.id, {})
    for name in ("nothing", "0" * 12, "../../heads/main"):
        with pytest.raises(StoreError, match=r"candidate"):
            Ledger(repo).reject(name, {})


def test_undo_of_a_rejection_keeps_it_on_record(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    Ledger(repo).reject(candidate.id, {"reason": "hasty"})
    assert Ledger(repo).undo(candidate.id).state == "pending"
    assert repo.candidate(candidate.id).state == "pending" and repo.verdict(candidate.commit) is None
    with pytest.raises(StoreError, match="nothing to undo"):
        Ledger(repo).undo(candidate.id)
    Ledger(repo).promote(candidate.id, {"reason": "second look"})
    verdict = repo.verdict(candidate.commit)
    assert verdict is not None and verdict["undone"][0]["reason"] == "hasty"


def test_undo_of_a_promotion_while_it_is_the_baseline(repo: LabRepo) -> None:
    first = repo.baseline()
    one = repo.propose({"a": "1"}, "one")
    Ledger(repo).promote(one.id, {})
    decision = Ledger(repo).undo(one.id)
    assert decision.baseline == repo.baseline() == first and not (repo.path / "a").exists() and repo.dirty() == []
    Ledger(repo).promote(one.id, {})
    two = repo.propose({"b": "1"}, "two")
    Ledger(repo).promote(two.id, {})
    with pytest.raises(StoreError, match="roll the baseline back"):
        Ledger(repo).undo(one.id)


def test_undo_returns_to_undecided(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    Ledger(repo).shelve(candidate.id, {"reason": "noise"})
    Ledger(repo).reject(candidate.id, {"reason": "enough"})
    assert Ledger(repo).undo(candidate.id).state == "undecided"
    assert repo.candidate(candidate.id).reason == "noise"
    assert Ledger(repo).undo(candidate.id).state == "pending"


def measured(candidate: Candidate, decision: Choice = "reject") -> Verdict:
    """A criterion's verdict: t3 is lost, t1 gained."""
    return Verdict(
        criterion="StrictPareto", value=float("inf"), decision=decision, baseline=candidate.parent,
        candidate=candidate.commit, solved={"baseline": ["t3"], "candidate": ["t1"]},
        flips=(Flip("t3", True, False, False), Flip("t1", False, True, False)), tasks=4, when="2020-01-01T00:00:00+00:00",
        why="loses t3",
    )  # fmt: skip


def test_override_is_recorded_beside_what_it_overrides(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    Ledger(repo).reject(candidate.id, measured(candidate))
    settled = Ledger(repo).override(candidate.id, "Änne", "t3 is broken")
    assert settled.baseline == candidate.commit == repo.baseline()
    verdict = repo.verdict(candidate.commit)
    assert verdict is not None and verdict["override"] is True and verdict["overrides"] == "rejected"
    assert (verdict["decided_by"], verdict["who"], verdict["why"]) == ("person", "Änne", "t3 is broken")
    assert [flip["task"] for flip in verdict["flips"]] == ["t3", "t1"], "the measurement stays"
    assert verdict["when"] > "2020-01-02", "the time is that of the person's decision"
    assert verdict["history"][0]["decided_by"] == "criterion"
    assert Ledger(repo).undo(candidate.id).state == "rejected"
    assert repo.candidate(candidate.id).reason == "loses t3"


def test_override_needs_who_why_and_a_rejection(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    for who, why, error, words in (("", "why", StoreError, "who"), ("me", " ", ConfigError, "reason")):
        with pytest.raises(error, match=words):
            Ledger(repo).override(candidate.id, who, why)
    with pytest.raises(StoreError, match="only a rejection"):
        Ledger(repo).override(candidate.id, "me", "why")
    Ledger(repo).promote(candidate.id, {})
    with pytest.raises(StoreError, match="only a rejection"):
        Ledger(repo).override(candidate.id, "me", "why")


def test_a_measurement_is_on_record_before_anybody_decides(repo: LabRepo) -> None:
    ledger, candidate = Ledger(repo), repo.propose({"a": "1"}, "one")
    ledger.measured(candidate.id, measured(candidate))
    row = repo.candidates(state="measured").rows[0]
    assert (row.id, row.delta, row.reason, row.decided_by, row.decided_at) == (
        candidate.id,
        0.0,
        "loses t3",
        None,
        None,
    )
    assert repo.candidate(candidate.id) == row and who_decided(row.verdict) is None
    assert solved_counts(row.verdict) == (1, 1, 4)
    with pytest.raises(StoreError, match="nothing to undo"):
        ledger.undo(candidate.id)
    ledger.carry_out("promote", candidate.ref, "Ada", "I like it")
    verdict = repo.verdict(candidate.commit) or {}
    assert (verdict["criterion"], verdict["overrides"], verdict["who"]) == ("StrictPareto", "rejected", "Ada")
    assert ledger.undo(candidate.id).state == "measured", "an undo keeps the measurement"
    assert repo.candidate(candidate.id).reason == "loses t3"
    ledger.measured(candidate.id, measured(candidate, "promote"))
    note = repo.note(candidate.commit) or {}
    assert (note["state"], note["decision"], note["undone"][0]["who"]) == ("measured", "promote", "Ada")
    assert "history" not in note, "a new measurement takes the place of the old one"


def test_a_measurement_does_not_reopen_what_was_decided_meanwhile(repo: LabRepo) -> None:
    ledger, candidate = Ledger(repo), repo.propose({"a": "1"}, "one")
    ledger.reject(candidate.id, {"reason": "no"})
    before = repo.note(candidate.commit)
    ledger.measured(candidate.id, measured(candidate))
    assert repo.candidate(candidate.id).state == "rejected" and repo.note(candidate.commit) == before


def make(repo: LabRepo, state: State, *, moved: bool) -> Candidate:
    """A candidate in a state, on the present baseline or on an earlier one."""
    ledger, candidate = Ledger(repo), repo.propose({"a": "1"}, "one")
    if state == "measured":
        ledger.measured(candidate.id, measured(candidate))
    elif state == "undecided":
        ledger.shelve(candidate.id, measured(candidate, "undecided"))
    elif state == "rejected":
        ledger.reject(candidate.id, measured(candidate))
    elif state == "promoted":
        ledger.promote(candidate.id, measured(candidate, "promote"))
    if moved:
        ledger.promote(repo.propose({"b": "1"}, "two").id, {})
    return repo.candidate(candidate.id)


POSSIBLE: dict[tuple[State, bool], list[Act]] = {
    ("pending", False): ["promote", "reject", "shelve"],
    ("pending", True): ["reject", "shelve", "retry"],
    ("measured", False): ["promote", "reject", "shelve"],
    ("measured", True): ["reject", "shelve", "retry"],
    ("undecided", False): ["promote", "reject", "undo"],
    ("undecided", True): ["reject", "undo", "retry"],
    ("rejected", False): ["override", "undo", "retry"],
    ("rejected", True): ["undo", "retry"],
    ("promoted", False): ["undo"],
    ("promoted", True): ["rollback"],
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(("state", "moved"), POSSIBLE)
def test_what_a_plan_allows_is_what_can_be_done(repo: LabRepo, state: State, moved: bool, act: Act) -> None:
    candidate = make(repo, state, moved=moved)
    ledger = Ledger(repo)
    assert ledger.possible(candidate) == POSSIBLE[state, moved]
    plan = ledger.plan(act, candidate.ref)
    assert plan.allowed == (act in POSSIBLE[state, moved]) and plan.steps
    before = repo.version()
    if plan.allowed:
        if plan.needs_why:
            with pytest.raises(ConfigError, match="reason"):
                ledger.carry_out(act, candidate.ref, "Ada", " ")
        done = ledger.carry_out(act, candidate.ref, "Ada", "because", seen=(plan.baseline, plan.commit))
        assert done.message and repo.version() != before
        assert repo.resolve(done.ref)
    else:
        with pytest.raises(StoreError, match=candidate.id if act != "rollback" else candidate.commit[:10]):
            ledger.carry_out(act, candidate.ref, "Ada", "because")
        assert repo.candidate(candidate.id) == candidate


@pytest.mark.parametrize("decision", ["promote", "reject", "undecided"])
@pytest.mark.parametrize("judged", ["promote", "reject", "undecided"])
def test_one_writer_of_a_persons_verdict(repo: LabRepo, judged: Choice, decision: Choice) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    assert who_decided(persons_verdict(candidate, decision, "Ada", "so").to_json()) == Decider("person", "Ada")
    Ledger(repo).measured(candidate.id, measured(candidate, judged))
    verdict = persons_verdict(repo.candidate(candidate.id), decision, "Ada", "so")
    assert verdict.overrides == (OUTCOME[judged] if judged != decision else None)
    assert who_decided(verdict.to_json()) == Decider("person", "Ada", judged != decision)
    assert Verdict.from_json(verdict.to_json()) == verdict and verdict.when > "2020-01-02"


@pytest.mark.parametrize(
    ("note", "who"),
    [
        (None, None),
        ({}, None),
        ({"state": "measured", "criterion": "Net"}, None),
        ({"state": "rejected", "criterion": "Net"}, Decider("criterion", "Net")),
        ({"decided_by": "person"}, Decider("person", "a person")),
        ({"override": True, "who": ["x"], "criterion": "Net"}, Decider("person", "['x']", True)),
        ({"decided_by": 7, "criterion": None}, Decider("criterion", "the criterion")),
    ],
)
def test_who_decided_from_any_note(note: dict[str, Any] | None, who: Decider | None) -> None:
    assert who_decided(note) == who


def test_the_last_decision_is_offered_until_git_forbids_it(repo: LabRepo) -> None:
    ledger = Ledger(repo)
    assert ledger.last_decision() is None
    one, two = repo.propose({"a": "1"}, "one"), repo.propose({"b": "1"}, "two")
    ledger.promote(one.id, {})
    ledger.reject(two.id, {})
    last = ledger.last_decision()
    assert last is not None and (last.label, last.ref) == ("two (rejected)", repo.candidate(two.id).ref)
    ledger.undo(two.id)
    last = ledger.last_decision()
    assert last is not None and last.ref == repo.candidate(one.id).ref
    done = ledger.carry_out("rollback", repo.root(), "Ada", "start over")
    last = ledger.last_decision()
    assert last is not None and last.ref == done.undo == repo.baseline()
    ledger.carry_out("undo", last.ref, "Ada")
    assert repo.files(repo.baseline()) == repo.files(one.commit)


def test_a_verdict_with_nan_is_refused_before_anything_moves(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    with pytest.raises(StoreError, match="JSON"):
        Ledger(repo).promote(candidate.id, {"delta": float("nan")})
    assert repo.candidate(candidate.id).state == "pending" and repo.baseline() == candidate.parent
