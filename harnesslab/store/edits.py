"""What a person has changed in the checkout, as git would store it: line ends and encodings converted as the lab asks for.

Compared is with the commit that is checked out, which need not be the baseline's.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harnesslab.errors import StoreError
from harnesslab.store.git import Git, GitFailed

MAX_FILE_BYTES = 4_000_000
"""A changed file beyond this is not offered as a part of a candidate."""


class Edits(NamedTuple):
    """`changes`: path to the content that git would store, None where the file was deleted. `left_out`: path to the
    reason why an edited file is not among them; empty for one that was not asked for."""

    changes: dict[str, bytes | None]
    left_out: dict[str, str]


def checked_out(git: Git) -> str | None:
    """The commit that HEAD names; None on a branch without commits."""
    return git.resolve_many(["HEAD^{commit}"])[0]


def dirty(git: Git) -> list[str]:
    """Paths whose staged or working content differs from the commit that is checked out, new files included, ignored ones not."""
    against = checked_out(git)
    if against is None:
        return []
    with _index_copy(git) as scratch:
        env = {"GIT_INDEX_FILE": str(scratch / "index")}
        changed = set(changed_files(git, against, env)) | set(staged_files(git, against, env))
    changed |= set(split_names(git.run("ls-files", "--others", "--exclude-standard", "-z")))
    return sorted(changed)


def changed_files(git: Git, against: str, env: Mapping[str, str]) -> list[str]:
    """Tracked files whose content on disk differs from a commit. `env` names a copy of the index.

    A file that was only touched or copied looks changed to plumbing until the index is refreshed. `diff` refreshes it, writes
    it back, and compares contents, with line ends as git would store them; `update-index --refresh` compares sizes first.
    """
    return split_names(git.run("diff", *_NAMES, against, "--", env=env))


def staged_files(git: Git, against: str, env: Mapping[str, str]) -> list[str]:
    """Files whose content in the index differs from a commit; `env` as for `changed_files`."""
    return split_names(git.run("diff", "--cached", *_NAMES, against, "--", env=env))


# A harness has no submodules, and to see whether one is dirty git would work in it, under its own configuration.
_NAMES = ("--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all", "--name-only", "-z")


def read_edits(git: Git, wanted: Callable[[str], bool], max_bytes: int = MAX_FILE_BYTES) -> Edits:
    """The edited files of the checkout that are `wanted`, in the form that `propose` takes."""
    against = checked_out(git)
    if against is None:
        return Edits({}, {})
    left_out: dict[str, str] = {}
    paths = []
    clashing = set(in_conflict(git))
    for name in dirty(git):
        reason = _unusable(git.path / name, max_bytes) if wanted(name) else ""
        if reason is None and name in clashing:
            reason = "in conflict; finish the merge first"
        if reason is None:
            paths.append(name)
        else:
            left_out[name] = reason
    changes, refused = _as_stored(git, against, paths)
    return Edits(changes, left_out | refused)


def in_conflict(git: Git) -> list[str]:
    """Files that a merge in progress has left in conflict."""
    entries = split_names(git.run("ls-files", "--unmerged", "-z"))
    return sorted({entry.partition("\t")[2] for entry in entries})


def take_up(git: Git, paths: Sequence[str], env: Mapping[str, str], *options: str) -> dict[str, str]:
    """Put files as they are on disk into the index that `env` names; returns those that git refuses, each with its words.

    It refuses what it cannot convert, such as a file in another encoding than `.gitattributes` says.
    """
    command = ("update-index", "--add", "--remove", *options, "-z", "--stdin")
    try:
        git.run(*command, input=_lines(paths), env=env, write=True)
        return {}
    except GitFailed as error:
        if error.cause:
            raise
    refused = {}
    for path in paths:
        try:
            git.run(*command, input=_lines([path]), env=env, write=True)
        except GitFailed as error:
            if error.cause:
                raise
            words = error.stderr.strip().splitlines() or ["git cannot store it"]
            refused[path] = re.sub("^(fatal|error): ", "", words[-1])[:200]
    return refused


def _lines(paths: Sequence[str]) -> bytes:
    return "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")


def _unusable(path: Path, max_bytes: int) -> str | None:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(found.st_mode) or path.parent.resolve() != path.parent:
        return "not a plain file"
    if found.st_size > max_bytes:
        return f"{found.st_size} bytes, more than {max_bytes}"
    return None


def _as_stored(git: Git, against: str, paths: Sequence[str]) -> tuple[dict[str, bytes | None], dict[str, str]]:
    """The content of the files on disk after git's own conversions, as far as it differs from the commit's; and what git refuses.

    A copy of the index takes the files up, and a folder of its own their blobs, so that the repository stays as it is.
    """
    if not paths:
        return {}, {}
    with _index_copy(git) as scratch:
        (scratch / "objects").mkdir()
        env = {
            "GIT_INDEX_FILE": str(scratch / "index"),
            "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(git.isolation.folders.common / "objects")),
        }
        refused = take_up(git, paths, env, "--ignore-skip-worktree-entries")
        raw = git.run(
            "diff-index", "--cached", "--no-renames", "--ignore-submodules=all", "--raw", "-z", against, "--", env=env
        )
        fields = raw.decode("utf-8", "surrogateescape").split("\0")
        found = {path: head.split(" ")[3:5] for head, path in zip(fields[0::2], fields[1::2], strict=False)}
        blobs = {path: blob for path in paths if path not in refused and (blob := found.get(path, ["", ""])[0])}
        contents = git.objects((blob for path, blob in blobs.items() if found[path][1] != "D"), env=env)
        return {path: contents.get(blob) for path, blob in blobs.items()}, refused


@contextlib.contextmanager
def _index_copy(git: Git) -> Iterator[Path]:
    """A folder of its own with a copy of the index, so that looking leaves the repository as it is."""
    try:
        with tempfile.TemporaryDirectory(prefix="harnesslab-", ignore_cleanup_errors=True) as name:
            scratch = Path(name)
            with contextlib.suppress(FileNotFoundError):
                # With its time stamp, with which git compares those of the files.
                shutil.copy2(git.isolation.folders.own / "index", scratch / "index")
            yield scratch
    except OSError as error:
        raise StoreError(f"A temporary index for {git.path} could not be written: {error.strerror}.") from None


def _quoted(path: str) -> str:
    """A path in a list of alternates, where the separator would otherwise split it."""
    return (
        '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if os.pathsep in path or path.startswith('"')
        else path
    )


def split_names(data: bytes) -> list[str]:
    """The names in output of git that was asked for with `-z`."""
    return [name.decode("utf-8", "surrogateescape") for name in data.split(b"\0") if name]
