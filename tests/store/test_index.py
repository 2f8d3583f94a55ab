"""Listings: pages, filters, orders; and the index always agrees with git, whoever changed it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harnesslab.errors import StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import Candidate, Filter, LabRepo

Run = Callable[..., str]


@pytest.fixture
def filled(repo: LabRepo) -> tuple[LabRepo, list[Candidate]]:
    made = []
    for number in range(6):
        meta = {"layer": ("skill", "action")[number % 2], "estimator": "Mining", "evidence": [f"task Straße {number}"]}
        made.append(repo.propose({"a": str(number)}, f"Idea {number}", meta))
    Ledger(repo).reject(made[0].id, {"delta": -2, "reason": "Loses t1", "decided_by": "StrictPareto"})
    Ledger(repo).reject(made[1].id, {"delta": 3, "reason": "Too slow", "decided_by": "Änne"})
    Ledger(repo).shelve(made[2].id, {"delta": 0.5, "reason": "noise"})
    return repo, made


def names(repo: LabRepo, **wanted: object) -> list[str]:
    return [row.subject for row in repo.candidates(**wanted).rows]  # type: ignore[arg-type]


def test_pages_in_order_of_time(filled: tuple[LabRepo, list[Candidate]]) -> None:
    repo, made = filled
    page = repo.candidates(offset=1, limit=2)
    assert page.total == 6 and [row.id for row in page.rows] == [made[4].id, made[3].id]
    assert repo.candidates(offset=99).rows == [] and repo.candidates(limit=0).total == 6


def test_order_by_delta_puts_unknown_last(filled: tuple[LabRepo, list[Candidate]]) -> None:
    assert names(filled[0], order="delta")[:4] == ["Idea 1", "Idea 2", "Idea 0", "Idea 5"]


def test_the_orders_can_be_turned_round(filled: tuple[LabRepo, list[Candidate]]) -> None:
    repo, made = filled
    assert [row.id for row in repo.candidates(order="-time").rows] == [candidate.id for candidate in made]
    assert names(repo, order="-delta")[:3] == ["Idea 0", "Idea 2", "Idea 1"]


def test_the_version_changes_with_every_change_and_comes_to_rest(filled: tuple[LabRepo, list[Candidate]]) -> None:
    repo, made = filled
    versions = [repo.version()]
    for change in (
        lambda: Ledger(repo).reject(made[3].id, {"reason": "no"}),
        lambda: Ledger(repo).undo(made[3].id),
        lambda: Ledger(repo).promote(made[4].id, {"reason": "yes"}),
        lambda: repo.propose({"a": "new"}, "New"),
    ):
        change()
        versions.append(repo.version())
    assert len(set(versions)) == 5
    assert any(repo.version() == repo.version() for _ in range(100_000)), "while nothing changes, it stays the same"


def test_filters(filled: tuple[LabRepo, list[Candidate]]) -> None:
    repo, _ = filled
    assert names(repo, state="rejected") == ["Idea 1", "Idea 0"]
    assert names(repo, state=("rejected", "undecided")) == ["Idea 2", "Idea 1", "Idea 0"]
    assert names(repo, layer="action", state="pending") == ["Idea 5", "Idea 3"]
    assert names(repo, text="STRASSE 4") == ["Idea 4"] and names(repo, text="%") == []
    assert names(repo, reason="loses") == ["Idea 0"] and names(repo, decided_by="Änne") == ["Idea 1"]
    assert repo.candidates(Filter(text="idea 3")).total == 1
    assert repo.counts() == {"pending": 3, "rejected": 2, "undecided": 1}
    for wrong in ({"state": "gone"}, {"order": "size"}):
        with pytest.raises(StoreError):
            repo.candidates(**wrong)  # type: ignore[arg-type]


def test_listing_equals_what_git_says(filled: tuple[LabRepo, list[Candidate]]) -> None:
    repo, made = filled
    assert {row.id: row for row in repo.candidates().rows} == {one.id: repo.candidate(one.id) for one in made}


def test_changes_by_plain_git_and_by_another_handle_are_seen(filled: tuple[LabRepo, list[Candidate]], git: Run) -> None:
    repo, made = filled
    assert repo.candidates().total == 6
    other = LabRepo.open(repo.path)
    Ledger(other).promote(made[3].id, {"delta": 9})
    assert repo.candidates(state="promoted").rows[0].delta == 9
    git("update-ref", "-d", f"refs/harnesslab/rejected/{made[0].id}")
    assert repo.candidates().total == other.candidates().total == 5
    git("pack-refs", "--all")
    git("gc", "-q")
    git("update-ref", f"refs/harnesslab/rejected/{made[0].id}", made[0].commit)
    assert repo.candidates(state="rejected", reason="loses").total == 1


@pytest.mark.parametrize("damage", ["delete", "garbage"])
def test_a_lost_or_damaged_index_is_built_anew(filled: tuple[LabRepo, list[Candidate]], damage: str) -> None:
    repo, _ = filled
    before = repo.candidates()
    repo.close()
    for path in (repo.git_dir / "harnesslab").glob("index.db*"):
        path.unlink() if damage == "delete" else path.write_bytes(b"garbage " * 500)
    assert LabRepo.open(repo.path).candidates() == before
