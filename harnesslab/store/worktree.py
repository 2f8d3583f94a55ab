"""The checked-out files: brought along with the baseline, but only where nobody touched them."""

from __future__ import annotations

import os
from pathlib import Path

from harnesslab.store.edits import changed_files, split_names, staged_files
from harnesslab.store.git import Git, GitFailed
from harnesslab.store.objects import write_tree
from harnesslab.store.refs import BASELINE


def on_baseline(git: Git) -> bool:
    """Is HEAD attached to the baseline's branch? (Else it is detached or on another branch.)"""
    return git.text("symbolic-ref", "-q", "HEAD", ok=(0, 1)) == BASELINE


def head_branch(git: Git) -> str | None:
    """The full ref that HEAD is attached to, or None when it is detached."""
    return git.text("symbolic-ref", "-q", "HEAD", ok=(0, 1)) or None


def follow(git: Git, old: str, new: str) -> list[str]:
    """After the baseline moved from `old` to `new`: bring the checkout along; returns the paths left as they were.

    Only files (and index entries) that still are what `old` says are updated. A file that a person
    changed, staged or put there stays untouched. Does nothing when HEAD is not on the baseline's branch.
    """
    if not on_baseline(git):
        return []
    moved = _changed_between(git, old, new)
    edited, staged = set(changed_files(git, old)), set(staged_files(git, old))
    tracked = set(split_names(git.run("ls-files", "-z")))
    ready: dict[str, str | None] = {}
    adopted: list[str] = []
    left: list[str] = []
    for path, blob in moved.items():
        on_disk = git.path / path
        in_the_way = path not in tracked and (on_disk.exists() or on_disk.is_symlink())
        if path not in edited and path not in staged and not in_the_way:
            ready[path] = blob
        elif path not in staged and _is_already(git, path, blob):
            adopted.append(path)
        else:
            left.append(path)
    left += _update_files(git, old, new, ready, bool(left or adopted))
    if adopted:
        # The person's file is what the new baseline says: only the index has to learn of it.
        git.run(
            "update-index", "--add", "--remove", "-z", "--stdin", input="\0".join(adopted).encode() + b"\0", write=True
        )
    return sorted(left)


def _update_files(git: Git, old: str, new: str, ready: dict[str, str | None], partly: bool) -> list[str]:
    if not ready:
        return []
    target = new
    if partly:
        contents = git.objects(blob for blob in ready.values() if blob)
        target = write_tree(git, old, {path: contents[blob] if blob else None for path, blob in ready.items()})
    # Not `--refresh`: it takes a file of another size for changed, and line ends change the size, not what git stores.
    same = [path for path in ready if os.path.lexists(git.path / path)]
    git.run("update-index", "-z", "--stdin", input="".join(f"{path}\0" for path in same).encode(), write=True)
    try:
        # git's own two-tree merge: it checks every file again and changes nothing if one is in the way.
        git.run("read-tree", "-m", "-u", "--end-of-options", old, target, write=True)
    except GitFailed:
        return list(ready)
    return []


def _changed_between(git: Git, old: str, new: str) -> dict[str, str | None]:
    fields = git.text("diff-tree", "-r", "-z", "--no-renames", "--end-of-options", old, new).split("\0")
    return {
        path: None if head.split(" ")[4] == "D" else head.split(" ")[3]
        for head, path in zip(fields[0::2], fields[1::2], strict=False)
    }


def _is_already(git: Git, path: str, blob: str | None) -> bool:
    on_disk: Path = git.path / path
    if blob is None:
        return not on_disk.exists() and not on_disk.is_symlink()
    if on_disk.is_symlink() or not on_disk.is_file():
        return False
    return git.text("hash-object", "--end-of-options", path) == blob
