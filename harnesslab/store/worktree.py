"""The checked-out files: brought along with the baseline, but only where nobody touched them."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harnesslab.errors import StoreError
from harnesslab.store.aside import set_aside
from harnesslab.store.edits import changed_files, in_conflict, split_names, staged_files, take_up
from harnesslab.store.git import DIFF_TREE, Git, GitFailed
from harnesslab.store.objects import write_tree
from harnesslab.store.process import explain
from harnesslab.store.refs import BASELINE, check_path

LOCK_WAIT_S = 1.0
"""How long another git may hold the lock of the index, in seconds."""

_MARK = b"harnesslab holds this lock\n"
"""Content of the lock file while it is ours: whoever has the lab's lock and finds it knows that its owner is dead."""


def on_baseline(git: Git) -> bool:
    """Is HEAD attached to the baseline's branch? (Else it is detached or on another branch.)"""
    return git.text("symbolic-ref", "-q", "HEAD", ok=(0, 1)) == BASELINE


def head_branch(git: Git) -> str | None:
    """The full ref that HEAD is attached to, or None when it is detached."""
    return git.text("symbolic-ref", "-q", "HEAD", ok=(0, 1)) or None


def check_move(git: Git, old: str, new: str) -> None:
    """Raise `StoreError` where the files of `new` could not be written into the checkout; before anything has moved."""
    follows = on_baseline(git)
    if follows and (clashing := in_conflict(git)):
        names = ", ".join(clashing[:5])
        raise StoreError(
            f"A merge in {git.path} is not finished ({names} in conflict), so the checkout could not follow; finish it, or undo it with "
            "`git merge --abort`.",
            cause="refused",
        )
    for change in _changed_between(git, old, new):
        if change.mode in _PLAIN:
            check_path(change.path)
        elif change.mode is not None:
            raise StoreError(
                f"{change.path[:200]!r} is a link or a repository of its own in commit {new[:10]}; a harness has plain files only.",
                cause="refused",
            )
        if follows:
            _refuse_read_only(git.path, change.path)


def _refuse_read_only(top: Path, path: str) -> None:
    folder = (top / path).parent
    while not folder.exists() and folder != top:
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        message = (
            f"{folder} is read-only for this user, so {path!r} cannot be updated; make it writable or copy the lab."
        )
        raise StoreError(message, cause="read_only")


@contextlib.contextmanager
def hold_index(git: Git, scratch: Path) -> Iterator[dict[str, str]]:
    """Hold git's lock on the index; gives the environment in which git works on a copy, which replaces the index at the end.

    Where another git has the lock, this is a `StoreError` before anything has changed. Call under the lab's lock; `scratch`
    is the name of the copy.
    """
    own = git.isolation.folders.own
    index, lock = own / "index", own / "index.lock"
    _take(git, lock)
    try:
        for leftover in (scratch, scratch.with_name(scratch.name + ".lock")):
            if leftover.is_dir():
                set_aside(leftover)
            leftover.unlink(missing_ok=True)
        if index.exists():
            shutil.copy2(index, scratch)  # with its time stamp, with which git compares those of the files
        yield {"GIT_INDEX_FILE": str(scratch)}
        if scratch.exists():
            scratch.replace(index)
    except OSError as error:
        raise StoreError(f"The index of {git.path} cannot be written: {error.strerror}.") from None
    finally:
        for ours in (scratch, lock):
            with contextlib.suppress(OSError):
                ours.unlink(missing_ok=True)


def drop_dead_lock(git: Git) -> None:
    """Remove the lock of the index that a killed process of this library left. Call under the lab's lock."""
    lock = git.isolation.folders.own / "index.lock"
    with contextlib.suppress(OSError):
        if lock.stat().st_size == len(_MARK) and lock.read_bytes() == _MARK:
            lock.unlink()


def _take(git: Git, lock: Path) -> None:
    drop_dead_lock(git)
    end = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            with lock.open("xb") as file:
                file.write(_MARK)
            return
        except FileExistsError:
            if time.monotonic() > end:
                raise explain(
                    git.path, ["update-index"], f"fatal: Unable to create '{lock}': File exists.", 128
                ) from None
            time.sleep(0.05)
        except OSError as error:
            words = f"fatal: Unable to create '{lock}': {error.strerror}"
            raise explain(git.path, ["update-index"], words, 128) from None


def follow(git: Git, old: str, new: str, env: Mapping[str, str]) -> list[str]:
    """After the baseline moved from `old` to `new`: bring the checkout along; returns the paths left as they were.

    Only files (and index entries) that still are what `old` says are updated. A file that a person
    changed, staged or put there stays untouched. Does nothing when HEAD is not on the baseline's branch.
    `env` is that of `hold_index`.
    """
    if not on_baseline(git):
        return []
    moved = {change.path: change.blob for change in _changed_between(git, old, new)}
    edited, staged = set(changed_files(git, old, env)), set(staged_files(git, old, env))
    tracked = set(split_names(git.run("ls-files", "-z", env=env)))
    ready: dict[str, str | None] = {}
    adopted: list[str] = []
    left: list[str] = []
    for path, blob in moved.items():
        on_disk = git.path / path
        in_the_way = path not in tracked and os.path.lexists(on_disk)
        if path not in edited and path not in staged and not in_the_way:
            ready[path] = blob
        elif path not in staged and _is_already(git, path, blob):
            adopted.append(path)
        else:
            left.append(path)
    left += _update_files(git, old, new, ready, bool(left or adopted), env)
    if adopted:
        # The person's file is what the new baseline says: only the index has to learn of it.
        left += take_up(git, adopted, env)
    return sorted(left)


def _update_files(
    git: Git, old: str, new: str, ready: dict[str, str | None], partly: bool, env: Mapping[str, str]
) -> list[str]:
    if not ready:
        return []
    target = new
    if partly:
        contents = git.objects(blob for blob in ready.values() if blob)
        target = write_tree(git, old, {path: contents[blob] if blob else None for path, blob in ready.items()})
    # Not `--refresh`: it takes a file of another size for changed, and line ends change the size, not what git stores.
    same = [path for path in ready if os.path.lexists(git.path / path)]
    git.run("update-index", "-z", "--stdin", input=_lines(same), env=env, write=True)
    try:
        # git's own two-tree merge: it checks every file again and changes nothing if one is in the way.
        git.run("read-tree", "-m", "-u", "--end-of-options", old, target, env=env, write=True)
    except GitFailed as error:
        if error.cause in ("full", "read_only", "deadline"):
            raise
        return list(ready)
    return []


class _Change(NamedTuple):
    """One file between two commits: `mode` and `blob` after it, None where it is deleted."""

    path: str
    mode: str | None
    blob: str | None


_PLAIN = ("100644", "100755")


def _changed_between(git: Git, old: str, new: str) -> list[_Change]:
    raw = git.run(*DIFF_TREE, "-z", "--end-of-options", old, new)
    fields = raw.decode("utf-8", "surrogateescape").split("\0")
    changes = []
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, blob, status = head.split(" ")
        changes.append(_Change(path, None, None) if status == "D" else _Change(path, mode, blob))
    return changes


def _is_already(git: Git, path: str, blob: str | None) -> bool:
    on_disk: Path = git.path / path
    if blob is None:
        return not os.path.lexists(on_disk)
    if on_disk.is_symlink() or not on_disk.is_file():
        return False
    return git.text("hash-object", "--end-of-options", path) == blob


def _lines(paths: Iterable[str]) -> bytes:
    return "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
