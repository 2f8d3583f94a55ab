"""A folder that others put files into: each file has one taker, and ends in one of two folders with a sentence beside it.

Every move is one rename under one lock, so a file is always in exactly one place, whoever is killed. What a process has
taken is in ``taken/<its own folder>``, whose lock ends with the process; whoever comes next puts the files of dead takers back.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from harnesslab.errors import EstimatorFault
from harnesslab.harness.base import LAYERS
from harnesslab.plainjson import loads

TAKEN, DONE, REFUSED = "taken", "done", "refused"
WAIT_S = 30.0
"""Seconds to wait while another process looks through the folder."""
_UNFINISHED = ("~", ".tmp", ".part", ".swp", ".crdownload")
_LOCK, _NOTES = ".lock", ".offered.json"

_own: dict[tuple[int, Path], tuple[FileLock, Path]] = {}
"""What this process has taken, by process (a fork has its own) and folder; two estimators on one folder share it."""
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Item:
    """A file that was taken: where it is, and its ``name`` in the folder, with the layer's folder in front if it had one."""

    path: Path
    name: str


class Inbox:
    """One folder. Use :meth:`open` around everything else."""

    def __init__(self, folder: Path):
        self.folder = folder

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Hold the folder's lock; it is made where it is missing. Raises EstimatorFault where it cannot be used."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / _LOCK, timeout=WAIT_S):
                yield
        except Timeout:
            raise EstimatorFault(
                f"the queue {self.folder} is in use by another process; waited {WAIT_S:g} s, try again"
            ) from None
        except OSError as error:
            raise EstimatorFault(f"the queue {self.folder} cannot be used: {error.strerror or error}") from error

    def take(self) -> list[Item]:
        """What this process has to look at, oldest first: what it took before, and what is new."""
        mine = self._mine()
        self._put_back_what_the_dead_took()
        for path in self._waiting():
            target = _free(mine / path.relative_to(self.folder))
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
        taken = [path for path in mine.rglob("*") if path.name != _LOCK and not _is_folder(path)]
        taken.sort(key=lambda path: (path.lstat().st_mtime_ns, path.name))
        return [Item(path, path.relative_to(mine).as_posix()) for path in taken]

    def finish(self, item: Item, where: str, sentence: str) -> None:
        """Move a file to ``done`` or ``refused``, with the sentence in a text file beside it."""
        target = _free(self.folder / where / item.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        # The sentence first: a kill in between leaves the file where it is found again.
        target.with_name(f"{target.name}.txt").write_text(f"{sentence}\n", encoding="utf-8")
        item.path.rename(target)

    def strangers(self) -> list[str]:
        """Folders that are not looked into, though somebody put something there."""
        known = {*LAYERS, TAKEN, DONE, REFUSED}
        return sorted(
            path.name
            for path in self.folder.iterdir()
            if _is_folder(path) and path.name not in known and not path.name.startswith(".") and any(path.iterdir())
        )

    def notes(self) -> dict[str, list[list[str]]]:
        """What was noted of files, by the hash of their bytes; empty where nothing readable was."""
        with contextlib.suppress(OSError, ValueError):
            found = loads((self.folder / _NOTES).read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return {key: value for key, value in found.items() if isinstance(value, list)}
        return {}

    def note(self, notes: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Keep the notes."""
        scratch = self.folder / f"{_NOTES}.{secrets.token_hex(4)}.tmp"
        scratch.write_text(json.dumps(notes), encoding="utf-8")
        scratch.replace(self.folder / _NOTES)

    def _waiting(self) -> list[Path]:
        places = [self.folder, *(self.folder / layer for layer in LAYERS if _is_folder(self.folder / layer))]
        return [path for place in places for path in place.iterdir() if not _is_folder(path) and _is_meant(path.name)]

    def _mine(self) -> Path:
        key = (os.getpid(), self.folder.resolve())
        with _guard:
            if key not in _own or not _own[key][1].is_dir():
                mine = key[1] / TAKEN / f"{key[0]}-{secrets.token_hex(4)}"
                mine.mkdir(parents=True)
                lock = FileLock(mine / _LOCK)
                lock.acquire(timeout=0)
                _own[key] = (lock, mine)
            return _own[key][1]

    def _put_back_what_the_dead_took(self) -> None:
        mine = self._mine()
        for place in (self.folder / TAKEN).iterdir():
            if place.name == mine.name or not _is_folder(place):
                continue
            lock = FileLock(place / _LOCK)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            try:
                for path in [path for path in place.rglob("*") if path.name != _LOCK and not _is_folder(path)]:
                    target = _free(self.folder / path.relative_to(place))
                    target.parent.mkdir(exist_ok=True)
                    path.rename(target)
            finally:
                lock.release()
            with contextlib.suppress(OSError):
                (place / _LOCK).unlink(missing_ok=True)
                for folder in (*(path for path in place.iterdir()), place):
                    folder.rmdir()


def _is_meant(name: str) -> bool:
    """Whether a file is for us: not hidden, not a README, and not one that is being written."""
    return not (name.startswith(".") or name.endswith(_UNFINISHED) or name.upper().startswith("README"))


def _is_folder(path: Path) -> bool:
    """Whether it is a folder of its own, not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _free(target: Path) -> Path:
    """The path, with a number in front of its ending where something is there already."""
    number, path = 1, target
    while os.path.lexists(path):
        number += 1
        path = target.with_name(f"{target.stem}-{number}{target.suffix}")
    return path
