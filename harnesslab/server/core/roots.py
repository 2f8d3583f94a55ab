"""Which folders the sidebar may look at: those below the Jupyter root, symbolic links resolved."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harnesslab.server.answers import LabKind
from harnesslab.server.problems import Problem

MANIFEST = "harness.toml"
FOREIGN_REFS = ("refs/candidates", "refs/experiments/runs")
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})
MAX_LINE = 4096
MAX_FOLDERS = 5_000
MAX_LABS = 500
SEARCH_S = 5.0
"""How long a search for labs may take, in seconds."""


def resolve_folder(root: Path, path: str) -> Path:
    """The folder that `path`, relative to `root`, names; `Problem` if it leaves the root or is not there.

    `path` comes from a browser: forward slashes, no drive, no `..`; a symbolic link may point anywhere
    inside the root.
    """
    parts = path.strip("/").split("/")
    if any(ord(char) < 32 or char in "\\:" for char in path) or ".." in parts or path.startswith("/"):
        raise _outside(path)
    base = root.resolve()
    folder = base.joinpath(*(part for part in parts if part not in ("", "."))).resolve()
    if not _inside(folder, base):
        raise _outside(path)
    if not folder.is_dir():
        raise Problem("vanished", f"There is no folder {path!r} any more (or never was); refresh the list of labs.")
    return folder


def guard_repository(root: Path, folder: Path, path: str) -> None:
    """Refuse a lab whose git folder or records lie outside `root`, before git is run in it."""
    base = root.resolve()
    git_dir = _git_dir(folder)
    for place in (git_dir, folder / ".harnesslab", folder / ".harnesslab" / "lab.db"):
        if place is not None and not _inside(place.resolve(), base):
            raise _outside(path)


def kind_of(folder: Path) -> LabKind | None:
    """What kind of repository a folder is, from its files alone (no git process); None if it is neither."""
    git_dir = _git_dir(folder)
    if git_dir is None:
        return None
    if (folder / MANIFEST).is_file() or (git_dir / "refs" / "harnesslab").is_dir() or (git_dir / "harnesslab").is_dir():
        return "lab"
    if any((git_dir / ref).is_dir() for ref in FOREIGN_REFS):
        return "harness-training"
    return _kind_from_packed_refs(git_dir)


@dataclass
class Found:
    """Folders with a lab, as paths below the root, and what the search left out."""

    paths: list[tuple[str, LabKind]] = field(default_factory=list)
    truncated: bool = False
    problems: list[str] = field(default_factory=list)


def find_labs(root: Path, starts: Sequence[str], depth: int) -> Found:
    """Search below each of `starts` (paths below `root`), at most `depth` folders deep, for labs."""
    found = Found()
    base = root.resolve()
    end = time.monotonic() + SEARCH_S
    seen: set[Path] = set()
    for start in starts or ["."]:
        try:
            top = resolve_folder(root, start)
        except Problem as problem:
            found.problems.append(str(problem))
            continue
        for count, folder in enumerate(_walk(top, depth)):
            if count >= MAX_FOLDERS or len(found.paths) >= MAX_LABS or time.monotonic() > end:
                found.truncated = True
                break
            kind = kind_of(folder)
            if kind is not None and folder not in seen:
                seen.add(folder)
                found.paths.append((folder.relative_to(base).as_posix(), kind))
    found.paths.sort()
    return found


def _walk(top: Path, depth: int) -> Iterator[Path]:
    """Folders breadth first; the inside of a repository, hidden folders and symbolic links are left out."""
    queue = deque([(top, 0)])
    while queue:
        folder, level = queue.popleft()
        yield folder
        if level >= depth or (level > 0 and kind_of(folder) is not None):
            continue
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        queue.extend((folder / name, level + 1) for name in names if not name.startswith(".") and name not in SKIPPED)


def _git_dir(folder: Path) -> Path | None:
    """The git folder of a checkout, also of a linked worktree; None where there is none."""
    dot_git = folder / ".git"
    if dot_git.is_dir():
        return dot_git
    try:
        if not dot_git.is_file():  # reading a pipe would never end
            return None
        with dot_git.open(encoding="utf-8", errors="replace") as file:
            text = file.read(4096)
    except OSError:
        return None
    if not text.startswith("gitdir:"):
        return None
    return folder / text.removeprefix("gitdir:").strip()


def _kind_from_packed_refs(git_dir: Path) -> LabKind | None:
    packed = git_dir / "packed-refs"
    try:
        if packed.is_symlink() or not packed.is_file():
            return None
        with packed.open(encoding="utf-8", errors="replace") as lines:
            while line := lines.readline(MAX_LINE):
                name = line.rstrip().partition(" ")[2]
                if name.startswith("refs/harnesslab/"):
                    return "lab"
                if name.startswith(tuple(f"{ref}/" for ref in FOREIGN_REFS)):
                    return "harness-training"
    except OSError:
        pass
    return None


def _inside(place: Path, base: Path) -> bool:
    return place == base or base in place.parents


def _outside(path: str) -> Problem:
    return Problem("outside_root", f"{path[:200]!r} is not a folder below the one that Jupyter was started in.")
