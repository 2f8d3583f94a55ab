"""A patch of somebody else's, applied to files in memory: with git's own rules, in an empty folder, far from any repository."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from harnesslab.errors import StoreError
from harnesslab.plaintext import clip
from harnesslab.store.process import execute

MAX_BYTES = 1_000_000
"""A longer patch is refused."""
MORE_FILES = 100
"""A patch that adds more files than these is refused."""
_BINARY = re.compile(rb"^GIT binary patch|^Binary files .* differ", re.MULTILINE)
_STRIP = (1, 0, 2, 3, 4)
"""Folders to take off the front of the paths: `a/` and `b/`, as git writes them; none; or those around a lab in a larger repository."""


class PatchRefused(StoreError):
    """A patch cannot be applied; says why. `applied`: because the files have its changes already."""

    def __init__(self, message: str, *, applied: bool = False):
        self.applied = applied
        super().__init__(message, cause="refused")


def apply_patch(files: Mapping[str, bytes], patch: bytes, expected: Callable[[str], bool]) -> dict[str, bytes]:
    """The `files` (relative path to content) after a unified diff, or the diffs of a `git format-patch` file.

    Every hunk must fit. Paths may have folders in front that are not part of the files' own: as many are taken off as it needs for all to be
    `expected` ones. Raises PatchRefused for what is not a patch, does not fit, is binary, or makes anything but plain files.
    """
    if len(patch) > MAX_BYTES:
        raise PatchRefused(f"has {len(patch):,} bytes; it may have {MAX_BYTES:,}")
    if _BINARY.search(patch):
        raise PatchRefused("changes binary files; a harness is text")
    if not re.search(rb"^(--- |diff --git )", patch, re.MULTILINE):
        raise PatchRefused("is not a patch: it has no unified diff in it")
    with tempfile.TemporaryDirectory(prefix="harnesslab-patch-") as made:
        folder = Path(made).resolve()
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        strip = next((f"-p{number}" for number in _STRIP if all(map(expected, _paths(folder, patch, number)))), "-p1")
        said = _git(folder, patch, strip, "--check")
        if said and not _git(folder, patch, strip, "--check", "--reverse"):
            raise PatchRefused("is part of the files already", applied=True)
        if said := said or _git(folder, patch, strip):
            raise PatchRefused(f"does not fit the baseline: {said}")
        return _read(folder, len(files) + MORE_FILES)


def _paths(folder: Path, patch: bytes, strip: int) -> list[str]:
    """The paths that the patch changes with so many folders taken off; one that nobody expects where it has none."""
    code, out, _ = execute(folder, ("apply", "--numstat", "-z", f"-p{strip}", "-"), data=patch)
    lines = [line.split("\t") for line in out.decode("utf-8", "replace").split("\0") if line]
    return [line[-1] for line in lines] if code == 0 and lines else [""]


def _git(folder: Path, patch: bytes, *how: str) -> str:
    """What git says against the patch, in one line; empty where it fits."""
    code, _, err = execute(folder, ("apply", *how, "--whitespace=nowarn", "-"), data=patch)
    lines = [line.removeprefix("error: ") for line in err.decode("utf-8", "replace").splitlines()]
    return "" if code == 0 else clip("; ".join(line for line in lines if line.strip()) or f"git apply said {code}", 300)


def _read(folder: Path, limit: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for base, folders, names in os.walk(folder):
        for path in sorted(Path(base, name) for name in (*folders, *names)):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                continue
            name = path.relative_to(folder).as_posix()
            if not stat.S_ISREG(mode):
                raise PatchRefused(f"makes {name} a link; a harness has plain files only")
            if len(found) == limit:
                raise PatchRefused(f"adds more than {MORE_FILES} files")
            found[name] = path.read_bytes()
    return dict(sorted(found.items()))
