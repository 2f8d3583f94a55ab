"""Moving several refs as one: a small redo log around `git update-ref --stdin`.

Git checks and locks all refs of a transaction together, but a process that is killed while git
renames the lock files can leave some moved and some not. So the intention is written first; whoever
opens the lab next under its lock finishes it. A ref that is at neither its old nor its new value was
moved by a person: it is left alone.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harnesslab.errors import StoreError
from harnesslab.plainjson import loads
from harnesslab.store.aside import set_aside
from harnesslab.store.git import Git, GitFailed
from harnesslab.store.ownfiles import write
from harnesslab.store.refs import BASELINE, FOLDERS, NOTES, SEALED_NOTES, SEALED_TAG, check_id

LOCK_AGE_S = 2.0
"""A lock file of a ref that is older than this, found while finishing a killed move, belongs to the dead git."""

MAX_LOG = 100_000
"""Characters of the log of one move."""

_ATTEMPTS = 20


@dataclass(frozen=True)
class RefMove:
    """One ref from `old` to `new`; None stands for 'does not exist'."""

    ref: str
    old: str | None
    new: str | None


class Moves:
    """Applies ref moves all or nothing, and finishes what a killed process began. Call under the lab's lock."""

    def __init__(self, git: Git, folder: Path, git_dir: Path):
        self.git, self.git_dir = git, git_dir
        self._log = folder / "move.json"

    def apply(self, moves: Sequence[RefMove], reason: str) -> None:
        """Move all refs or none; `GitFailed` when one is no longer at its old value."""
        try:
            log = json.dumps([asdict(move) for move in moves]).encode()
            write(self._log.parent.parent, f"{self._log.parent.name}/{self._log.name}", log)
        except OSError as error:
            raise StoreError(f"The lab {self.git.path} cannot be written: {error.strerror}.") from None
        try:
            self._update(moves, reason)
        except BaseException:
            # A refusal or an interrupt, and our git has ended. If it moved something, `finish` will move the rest.
            if self._untouched(moves):
                self.done()
            raise

    def done(self) -> None:
        """Forget the logged move; everything that follows from it has been written."""
        with contextlib.suppress(OSError):
            self._log.unlink()

    def interrupted(self) -> bool:
        """Is there a move that a killed process did not finish?"""
        return self._log.exists()

    def finish(self) -> list[RefMove]:
        """Complete an interrupted move; returns its moves, for the caller to follow with the working files.

        What was written down is made, even if nothing had moved yet: the git of the dead process may be
        about to. The caller ends with `done`.
        """
        try:
            with self._log.open(encoding="utf-8") as file:
                moves = [_checked(RefMove(**entry)) for entry in loads(file.read(MAX_LOG))]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, AttributeError, StoreError):
            set_aside(self._log)  # torn while being written, so no ref had moved yet; or not written by us
            return []
        self._clear_dead_locks(moves)
        for attempt in range(_ATTEMPTS):
            now = self.git.resolve_many([move.ref for move in moves])
            left = [move for move, value in zip(moves, now, strict=True) if value == move.old]
            begun = any(value == move.new for move, value in zip(moves, now, strict=True))
            if not begun and len(left) < len(moves):
                return []  # a person moved a ref first, and the move had not begun: it cannot be made any more
            if not left:
                break
            try:
                self._update(left, "finish an interrupted move")
                break
            except GitFailed:
                # The git of the dead process may still be at it; look again what is left.
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(0.05)
        return moves

    def _untouched(self, moves: Sequence[RefMove]) -> bool:
        now = self.git.resolve_many([move.ref for move in moves])
        return not any(value == move.new for move, value in zip(moves, now, strict=True))

    def _update(self, moves: Sequence[RefMove], reason: str) -> None:
        lines = ["start\0"]
        for move in moves:
            if move.new is None:
                lines.append(f"delete {move.ref}\0{move.old}\0")
            elif move.old is None:
                lines.append(f"create {move.ref}\0{move.new}\0")
            else:
                lines.append(f"update {move.ref}\0{move.new}\0{move.old}\0")
        lines.append("commit\0")
        message = f"harnesslab: {reason}".replace("\n", " ")[:200]
        self.git.run(
            "update-ref", "-m", message, "--no-deref", "--stdin", "-z", input="".join(lines).encode(), write=True
        )

    def _clear_dead_locks(self, moves: Sequence[RefMove]) -> None:
        names = [*(f"{move.ref}.lock" for move in moves), "packed-refs.lock", "HEAD.lock"]
        end = time.monotonic() + 2 * LOCK_AGE_S
        for lock in (self.git_dir / name for name in names):
            while (age := _age(lock)) is not None and time.monotonic() < end:
                if age > LOCK_AGE_S:
                    with contextlib.suppress(OSError):
                        lock.unlink()
                    break
                time.sleep(0.05)


def _checked(move: RefMove) -> RefMove:
    """The move itself if it is one that this library makes, else ValueError: the log may have come with the lab."""
    folder, _, name = move.ref.rpartition("/")
    if move.ref not in (BASELINE, NOTES, SEALED_NOTES, SEALED_TAG):
        if f"{folder}/" not in FOLDERS.values():
            raise ValueError(move.ref)
        check_id(name)
    commits = [value for value in (move.old, move.new) if value is not None]
    if not commits or not all(_OBJECT.fullmatch(commit) for commit in commits):
        raise ValueError(move.ref)
    return move


_OBJECT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def _age(path: Path) -> float | None:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return None
