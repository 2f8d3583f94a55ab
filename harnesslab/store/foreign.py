"""Repositories trained with harness-training, read-only: their candidates and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harnesslab.store.git import Git
from harnesslab.store.objects import read_commits

PREFIXES = ("refs/candidates/", "refs/experiments/runs/")


@dataclass(frozen=True)
class ForeignCandidate:
    """One foreign ref; `promoted` if its commit is an ancestor of HEAD (or HEAD itself), else `rejected`."""

    ref: str
    commit: str
    state: Literal["promoted", "rejected"]
    subject: str
    author: str
    created: float


def list_foreign(path: Path | str, *, offset: int = 0, limit: int = 50) -> tuple[int, list[ForeignCandidate]]:
    """How many foreign refs a repository has, and one page of them, newest ref name last. Changes nothing."""
    git = Git(path)
    listing = git.text("for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", *PREFIXES, deadline=120)
    entries = [line.split(" ", 2) for line in listing.split("\n") if line]
    entries = [entry for entry in entries if entry[1] == "commit"]
    page = entries[max(0, offset) : max(0, offset) + max(0, limit)]
    if not page:
        return len(entries), []
    head = git.resolve_many(["HEAD^{commit}"])[0]
    merged = set(git.text("rev-list", "--end-of-options", head, deadline=120).split()) if head else set()
    commits = {commit.id: commit for commit in read_commits(git, [entry[0] for entry in page])}
    rows = [
        ForeignCandidate(
            ref=ref,
            commit=commit_id,
            state="promoted" if commit_id in merged else "rejected",
            subject=commits[commit_id].subject,
            author=commits[commit_id].author,
            created=commits[commit_id].created,
        )
        for commit_id, _, ref in page
        if commit_id in commits
    ]
    return len(entries), rows


def foreign_version(path: Path | str) -> str:
    """A text that changes whenever a foreign ref or a branch does."""
    return Git(path).text("for-each-ref", "--format=%(objectname) %(refname)", *PREFIXES, "refs/heads/")
