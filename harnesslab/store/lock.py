"""One lock per lab, for threads and processes, that can name its owner.

The lock itself is the operating system's (through `filelock`), so it vanishes with the process
that holds it: a killed kernel never leaves a stale one. A small JSON file beside it says who
holds it and what for, which is what a waiting user needs to know.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from harnesslab.errors import LabLocked, StoreError
from harnesslab.plainjson import loads
from harnesslab.plaintext import one_line
from harnesslab.store.ownfiles import refuse_links, write

_LOCK = "lab.lock"

MAX_OWNER = 10_000
"""Characters of the file that names the owner."""

WAIT_S = 10.0
"""How long a caller waits for the lock before `LabLocked` is raised, in seconds."""


class LabLock:
    """Re-entrant in its thread; excludes other threads and other processes.

    >>> lock = LabLock(git_dir / "harnesslab")            # doctest: +SKIP
    >>> with lock.hold("promote 01abc"): ...               # doctest: +SKIP
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._owner = folder / "lock-owner.json"
        self._thread_lock = _thread_lock(folder)
        self._file_lock = _file_lock(folder)

    @contextlib.contextmanager
    def hold(self, purpose: str, wait: float = WAIT_S) -> Iterator[None]:
        """Hold the lock for a `with` block; raises `LabLocked` after `wait` seconds, naming the owner."""
        end = time.monotonic() + wait
        if not self._thread_lock.acquire(timeout=wait):
            raise LabLocked(self._describe(wait))
        try:
            outermost = not self._file_lock.is_locked
            self._acquire(max(0.0, end - time.monotonic()), wait)
            try:
                if outermost:
                    self._sign(purpose)
                yield
            finally:
                if outermost:
                    with contextlib.suppress(OSError):
                        self._owner.unlink()
                self._file_lock.release()
        finally:
            self._thread_lock.release()

    def owner(self) -> dict[str, object] | None:
        """Who holds the lock: pid, host, since (seconds since 1970), purpose; None when nobody signed."""
        try:
            with self._owner.open(encoding="utf-8") as file:
                owner = loads(file.read(MAX_OWNER))
        except (OSError, ValueError):
            return None
        signed = isinstance(owner, dict) and isinstance(owner.get("since"), (int, float))
        return owner if signed else None

    def _acquire(self, left: float, wait: float) -> None:
        try:
            refuse_links(self.folder.parent, f"{self.folder.name}/{_LOCK}")
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file_lock.acquire(timeout=left, poll_interval=0.01)
        except Timeout:
            raise LabLocked(self._describe(wait)) from None
        except (OSError, NotImplementedError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise StoreError(
                f"The lab cannot be locked in {self.folder}: {reason}; a lab needs a writable folder."
            ) from None

    def _sign(self, purpose: str) -> None:
        # The signature is a courtesy: a full disk must not keep the lock from working.
        with contextlib.suppress(OSError, StoreError):
            owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time(), "purpose": purpose}
            write(self.folder.parent, f"{self.folder.name}/{self._owner.name}", json.dumps(owner).encode())

    def _describe(self, wait: float) -> str:
        owner = self.owner()
        if owner is None:
            who = "another process"
        else:
            since = max(0.0, time.time() - float(str(owner["since"])))
            who = f"process {owner.get('pid')} on {owner.get('host')} (for {since:.0f} s, to {owner.get('purpose')})"
            who = one_line(who)[:300]
        return f"The lab is locked by {who}; waited {wait:g} s. Try again when it is done, or stop that process."


_registry: dict[Path, tuple[threading.RLock, FileLock]] = {}
_registry_guard = threading.Lock()


def _entry(folder: Path) -> tuple[threading.RLock, FileLock]:
    # One pair per folder and process, so that two handles on one lab are re-entrant with each other.
    with _registry_guard:
        key = folder.resolve()
        if key not in _registry:
            _registry[key] = (threading.RLock(), FileLock(str(folder / _LOCK), thread_local=False))
        return _registry[key]


def _thread_lock(folder: Path) -> threading.RLock:
    return _entry(folder)[0]


def _file_lock(folder: Path) -> FileLock:
    return _entry(folder)[1]
