"""Sees what a library does: programs that are started, files that are opened for writing, and what has changed outside of a lab."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Seen:
    """`programs` by their path; `writes`: files that Python opened for writing, or the folders and targets of a rename;
    `databases`: files given to SQLite; `hosts`: addresses that were called."""

    programs: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)
    hosts: list[Any] = field(default_factory=list)

    def writes_outside(self, *allowed: Path) -> list[str]:
        """Written files that are neither below one of the folders nor temporary."""
        tops = [*allowed, Path(tempfile.gettempdir()) / "harnesslab-"]
        return [
            name for name in {*self.writes, *self.databases} if not name.startswith(tuple(str(top) for top in tops))
        ]


_watching: list[Seen] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    for seen in _watching:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "pty.spawn"):
            seen.programs.append(
                os.fsdecode(args[0]) if isinstance(args[0], str | bytes | os.PathLike) else str(args[0])
            )
        elif event == "open" and isinstance(args[0], str | bytes | os.PathLike):
            mode, flags = args[1], args[2] if isinstance(args[2], int) else 0
            if flags & WRITING or (isinstance(mode, str) and set(mode) & set("wax+")):
                _note(seen.writes, args[0])
        elif event in ("os.rename", "os.link", "os.symlink"):
            _note(seen.writes, args[1])
        elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree"):
            _note(seen.writes, args[0])
        elif event == "sqlite3.connect" and args[0] != ":memory:":
            _note(seen.databases, args[0])
        elif event == "socket.connect":
            seen.hosts.append(args[1])


def _note(places: list[str], name: Any) -> None:
    text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    if Path(text).is_absolute() and text != os.devnull:  # a relative one is below an open folder
        places.append(text)


@contextlib.contextmanager
def watching() -> Iterator[Seen]:
    """What happens in this process inside the `with` block."""
    if not hasattr(sys, "_harnesslab_canary"):
        sys.addaudithook(_hook)
        sys._harnesslab_canary = True  # type: ignore[attr-defined]  (a hook cannot be taken back)
    seen = Seen()
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


def contents(folder: Path) -> dict[str, bytes | str]:
    """Every file and link below a folder, by its path."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }
