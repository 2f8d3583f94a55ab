"""Moving several refs as one: a small redo log around `git update-ref --stdin`.

Git checks and locks all refs of a transaction together, but a process that is killed while git
renames the lock files can leave some moved and some not. So the intention is written first; whoever
opens the lab next under its lock finishes it. A ref that is at neither its old nor its new value was
moved by a person: it is left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harnesslab.errors import StoreError
from harnesslab.store.git import Git, GitFailed

LOCK_AGE_S = 2.0
"""A lock file of a ref that is older than this, found while finishing a killed move, belongs to the dead git."""


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
            _write_durably(self._log, json.dumps([asdict(move) for move in moves]))
        except OSError as error:
            raise StoreError(f"The lab {self.git.path} cannot be written: {error.strerror}.") from None
        try:
            self._update(moves, reason)
        except GitFailed:
            # git moved nothing unless it was killed; then `finish` at the next opening decides.
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
        """Complete an interrupted move; returns its moves, for the caller to follow with the working files."""
        try:
            moves = [RefMove(**entry) for entry in json.loads(self._log.read_text(encoding="utf-8"))]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError):
            self.done()  # torn while being written: no ref had moved yet
            return []
        self._clear_dead_locks(moves)
        now = self.git.resolve_many([move.ref for move in moves])
        if any(value == move.new for move, value in zip(moves, now, strict=True)):
            left = [move for move, value in zip(moves, now, strict=True) if value == move.old and value != move.new]
            if left:
                self._update(left, "finish an interrupted move")
            return moves
        self.done()  # nothing had moved: as if it had not been asked
        return []

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


def _age(path: Path) -> float | None:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return None


def _write_durably(path: Path, text: str) -> None:
    scratch = path.with_suffix(".new")
    with scratch.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
