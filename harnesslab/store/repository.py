"""Any git repository, for looking only: commits by name, their files, and what differs between them."""

from __future__ import annotations

from pathlib import Path

from harnesslab.errors import StoreError
from harnesslab.store.diff import Diff, compare
from harnesslab.store.git import Git, GitFailed
from harnesslab.store.objects import Commit, read_commits, read_files
from harnesslab.store.refs import check_name
from harnesslab.store.worktree import head_branch

MAX_HARNESS_BYTES = 20_000_000
"""The files of one commit, together, at most."""


class Repository:
    """Looks at a repository. Names of commits are full ref names, `HEAD`, or commit ids, short ones included."""

    def __init__(self, git: Git | Path):
        self._git = git if isinstance(git, Git) else Git(git)

    @property
    def path(self) -> Path:
        """The folder of the checkout."""
        return self._git.path

    def head(self) -> str | None:
        """The full name of the branch that the checkout is on; None when HEAD is detached."""
        return head_branch(self._git)

    def user(self) -> str:
        """The author's name by git's rules; empty where none is set."""
        return self._git.author().strip()

    def notices(self) -> list[str]:
        """What a reader should know before using git in this folder, one sentence each; [] for a plain lab."""
        return self._git.isolation.notices()

    def resolve(self, name: str) -> str:
        """The commit id behind a name; `StoreError` (cause `bad_ref` or `not_found`) if there is none."""
        found = self._git.resolve_many([f"{check_name(name)}^{{commit}}"])[0]
        if found is None:
            raise StoreError(f"There is no commit {name} in {self.path}.", cause="not_found")
        return found

    def commit(self, name: str) -> Commit:
        """The commit behind a name; `StoreError` as :meth:`resolve`, or with cause `corrupt` if it cannot be read."""
        return commit_of(self._git, self.resolve(name))

    def files(self, commit: str) -> dict[str, bytes]:
        """All files at a commit, path to content."""
        return read_files(self._git, self.resolve(commit), MAX_HARNESS_BYTES)

    def diff(self, old: str, new: str) -> Diff:
        """Compare any two refs or commits."""
        return compare(self._git, self.resolve(old), self.resolve(new))

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether commit `old` is in the history of commit `new`, or is it."""
        try:
            self._git.run("merge-base", "--is-ancestor", old, new)
        except GitFailed as error:
            if error.code == 1:
                return False
            raise
        return True


def commit_of(git: Git, commit: str) -> Commit:
    """Read one commit by its id; `StoreError` if it is not there."""
    found = read_commits(git, [commit])
    if not found:
        raise StoreError(
            f"Commit {commit[:10]} is not in {git.path}; the repository may be damaged (run `git fsck`).",
            cause="corrupt",
        )
    return found[0]
