"""What the operations on a lab share: the runner, the lock, the move log, the index, and how they start."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harnesslab.errors import BaselineMoved, LabLocked, StoreError
from harnesslab.store.git import Git, GitFailed
from harnesslab.store.index import CandidateIndex
from harnesslab.store.lock import WAIT_S, LabLock
from harnesslab.store.moves import Moves, RefMove
from harnesslab.store.ownfiles import read, write
from harnesslab.store.refs import BASELINE, FOLDERS, NOTES, State, check_id
from harnesslab.store.worktree import check_move, drop_dead_lock, follow, hold_index

PRIVATE = ".harnesslab"
"""The folder of records in a lab, kept out of git by `.git/info/exclude`."""
LEARNING = "learning.md"
"""The running diagnosis, rewritten after each verdict: kept out of git, and no edit of the user's."""


@dataclass(frozen=True)
class Place:
    """Where things are right now: the baseline, the notes commit, and one candidate's commit and state folder."""

    baseline: str
    notes: str | None
    id: str
    commit: str
    folder: State


class Core:
    """The parts of one opened repository."""

    def __init__(self, path: Path):
        self.path = path
        self.git = Git(path)
        self.git_dir = self.git.isolation.folders.common
        folder = self.git_dir / "harnesslab"
        self.lock = LabLock(folder)
        self.moves = Moves(self.git, folder, self.git_dir)
        self.index = CandidateIndex(self.git, self.git_dir)

    @contextlib.contextmanager
    def writing(self, purpose: str, wait: float = WAIT_S) -> Iterator[None]:
        """Hold the lab's lock, after finishing what a killed process left half done."""
        self.git.isolation.check()
        self.git.forget_identity()
        with self.lock.hold(purpose, wait):
            self.recover()
            yield

    def recover(self) -> None:
        """Finish an interrupted move, working files included. Call under the lock."""
        drop_dead_lock(self.git)
        if self.moves.interrupted():
            moves = self.moves.finish()
            for move in _of_baseline(moves):
                with hold_index(self.git, self._scratch) as env:
                    follow(self.git, str(move.old), str(move.new), env)
            self.moves.done()

    def move(self, moves: list[RefMove], reason: str) -> tuple[str, ...]:
        """Move refs all or nothing, and the checkout with the baseline; returns the files left as a person had edited them.

        What would keep the checkout from following (a lock of git's, a folder without write access, a name that cannot be
        a file) is found before anything moves. Raises `BaselineMoved` where plain git has moved the baseline meanwhile.
        """
        left: list[str] = []
        main = _of_baseline(moves)
        for move in main:
            check_move(self.git, str(move.old), str(move.new))
        with contextlib.ExitStack() as held:
            env = held.enter_context(hold_index(self.git, self._scratch)) if main else {}
            try:
                self.moves.apply(moves, reason)
            except GitFailed as error:
                # Somebody with plain git does not know our lock.
                if main and self.baseline() != main[0].old:
                    raise BaselineMoved(
                        f"The baseline was moved by another program to {self.baseline()[:10]} just now."
                    ) from error
                raise
            for move in main:
                left += follow(self.git, str(move.old), str(move.new), env)
        self.moves.done()
        return tuple(left)

    @property
    def _scratch(self) -> Path:
        return self.git_dir / "harnesslab" / "index.next"

    def recover_if_free(self) -> None:
        """At opening: repair, unless somebody is at work, then it is not broken, or the folder is read-only."""
        if self.moves.interrupted() or (self.git.isolation.folders.own / "index.lock").exists():
            with contextlib.suppress(LabLocked, StoreError), self.lock.hold("repair", wait=2.0):
                self.recover()

    def baseline(self) -> str:
        """The commit of the baseline."""
        commit = self.git.resolve_many([BASELINE])[0]
        if commit is None:
            raise StoreError(f"The repository {self.path} has no branch 'main'; a lab keeps its baseline there.")
        return commit

    def locate(self, candidate_id: str) -> Place:
        """Find a candidate by id, straight from git."""
        check_id(candidate_id)
        folders: tuple[State, ...] = ("promoted", "rejected", "pending")
        names = [BASELINE, NOTES, *(FOLDERS[folder] + candidate_id for folder in folders)]
        baseline, notes, *commits = self.git.resolve_many(names)
        if baseline is None:
            raise StoreError(f"The repository {self.path} has no branch 'main'; a lab keeps its baseline there.")
        for folder, commit in zip(folders, commits, strict=True):
            if commit is not None:
                return Place(baseline, notes, candidate_id, commit, folder)
        raise StoreError(
            f"There is no candidate {candidate_id} in {self.path}; `candidates()` lists them.",
            cause="not_found",
        )


def _of_baseline(moves: Sequence[RefMove]) -> list[RefMove]:
    return [move for move in moves if move.ref == BASELINE and move.old and move.new]


def exclude_records(git_dir: Path) -> None:
    """Keep what the library writes beside the harness out of git, without asking the user for a `.gitignore`."""
    text = b""
    with contextlib.suppress(FileNotFoundError):
        text = read(git_dir, _EXCLUDE)
    missing = [line for line in (f"/{PRIVATE}/".encode(), f"/{LEARNING}".encode()) if line not in text.splitlines()]
    if missing:
        lines = [text.removesuffix(b"\n")] if text else []
        write(git_dir, _EXCLUDE, b"\n".join([*lines, *missing, b""]))


_EXCLUDE = "info/exclude"
