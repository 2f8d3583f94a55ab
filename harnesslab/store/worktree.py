"""The checked-out files: told apart from the baseline, and updated only where nobody touched them."""

from __future__ import annotations

from pathlib import Path

from harnesslab.errors import StoreError
from harnesslab.store.git import Git, GitFailed
from harnesslab.store.objects import write_tree
from harnesslab.store.refs import BASELINE

MAX_FILE_BYTES = 4_000_000
"""A changed file beyond this is not offered as a part of a candidate."""


def on_baseline(git: Git) -> bool:
    """Is HEAD attached to the baseline's branch? (Else it is detached or on another branch.)"""
    return git.text("symbolic-ref", "-q", "HEAD", ok=(0, 1)) == BASELINE


def head_branch(git: Git) -> str | None:
    """The full ref that HEAD is attached to, or None when it is detached."""
    return git.text("symbolic-ref", "-q", "HEAD", ok=(0, 1)) or None


def dirty(git: Git, against: str) -> list[str]:
    """Paths whose staged or working content differs from commit `against`, new files included, ignored ones not."""
    # A file that was only touched looks changed to diff-index until the index is refreshed; a copy of
    # the index is not worth it: contents are compared instead.
    changed = set(
        _split(git.run("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--name-only", "-z", against, "--"))
    )
    changed |= set(
        _split(git.run("diff", "--cached", "--no-ext-diff", "--no-renames", "--name-only", "-z", against, "--"))
    )
    changed |= set(_split(git.run("ls-files", "--others", "--exclude-standard", "-z")))
    return sorted(changed)


def working_changes(git: Git, against: str) -> dict[str, bytes | None]:
    """The dirty checkout as changes for `propose`: path to its content on disk, None where it was deleted."""
    changes: dict[str, bytes | None] = {}
    for name in dirty(git, against):
        path = git.path / name
        if path.is_symlink() or path.is_dir():
            raise StoreError(f"{name} is a link or a repository of its own; a candidate can only hold plain files.")
        if not path.exists():
            changes[name] = None
            continue
        if path.stat().st_size > MAX_FILE_BYTES:
            raise StoreError(
                f"{name} has {path.stat().st_size} bytes; a file of a harness has at most {MAX_FILE_BYTES}."
            )
        changes[name] = path.read_bytes()
    known = set(_split(git.run("ls-tree", "-r", "-z", "--name-only", "--end-of-options", against)))
    return {name: content for name, content in changes.items() if content is not None or name in known}


def follow(git: Git, old: str, new: str) -> list[str]:
    """After the baseline moved from `old` to `new`: bring the checkout along; returns the paths left as they were.

    Only files (and index entries) that still are what `old` says are updated. A file that a person
    changed, staged or put there stays untouched. Does nothing when HEAD is not on the baseline's branch.
    """
    if not on_baseline(git):
        return []
    moved = _changed_between(git, old, new)
    edited = set(
        _split(git.run("diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--name-only", "-z", old, "--"))
    )
    staged = set(_split(git.run("diff", "--cached", "--no-ext-diff", "--no-renames", "--name-only", "-z", old, "--")))
    tracked = set(_split(git.run("ls-files", "-z")))
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
    git.run("update-index", "-q", "--refresh", write=True, ok=(0, 1))
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


def _split(data: bytes) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in data.split(b"\0") if name]
