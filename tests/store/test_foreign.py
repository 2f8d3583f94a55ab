"""Repositories of harness-training are listed and left as they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harnesslab.errors import StoreError
from harnesslab.store import LabRepo, list_foreign


def test_ancestors_of_head_are_promoted_the_rest_rejected(repo: LabRepo, git: Callable[..., str]) -> None:
    first = repo.baseline()
    good = repo.propose({"a": "1"}, "good").commit
    bad = repo.propose({"a": "2"}, "bad").commit
    git("update-ref", "refs/candidates/1", good)
    git("update-ref", "refs/candidates/2", bad)
    git("update-ref", "refs/experiments/runs/r/0", first)
    git("merge", "-q", "--ff-only", good)
    before = git("for-each-ref")
    total, rows = list_foreign(repo.path)
    assert total == 3
    assert [(row.ref, row.state, row.subject) for row in rows] == [
        ("refs/candidates/1", "promoted", "good"),
        ("refs/candidates/2", "rejected", "bad"),
        ("refs/experiments/runs/r/0", "promoted", "Start the lab"),
    ]
    assert [row.ref for row in list_foreign(repo.path, offset=1, limit=1)[1]] == ["refs/candidates/2"]
    assert git("for-each-ref") == before


def test_a_folder_without_a_repository(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(StoreError, match="no git repository"):
        list_foreign(tmp_path_factory.mktemp("empty"))
