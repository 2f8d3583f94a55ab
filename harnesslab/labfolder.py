"""Which folders are labs: told from git alone, before anything in the folder is written or trusted.

A lab is a git repository of its own, with its `.git` folder in it, whose branch `main` holds a harness, or which harnesslab made. That also holds for
a clone made by plain git, which brings neither refs nor records along.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

from harnesslab.errors import HarnessFileError, StoreError
from harnesslab.harness.files import MANIFEST, decode
from harnesslab.harness.load import read_manifest
from harnesslab.store.git import Git
from harnesslab.store.objects import read_commits
from harnesslab.store.refs import BASELINE, NOTES
from harnesslab.store.repo import START

_REFS = ("refs/harnesslab", NOTES)
_RESERVED = (".git", ".harnesslab")
_SHOWN = 3
_INSTEAD = "choose a folder that is empty or does not exist yet"


def full_path(path: str | Path) -> Path:
    """The absolute path of a lab's folder, links resolved. Raises StoreError for what cannot be a path."""
    try:
        folder = Path(path).expanduser().resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a null byte, the home of nobody
        raise StoreError(f"{str(path)[:200]!r} is not a usable path: {error}.", cause="not_a_lab") from error
    reserved = next((part for part in folder.parts if part in _RESERVED), None)
    if reserved:
        raise _not_a_lab(folder, f"is inside a {reserved} folder")
    return folder


def is_lab(folder: Path) -> bool:
    """True for a lab, False where a lab can be made: nothing is there, or an empty folder.

    Raises StoreError, cause ``not_a_lab``, for everything else. Writes nothing.
    """
    names = _names(folder)
    if not names:
        _refuse_special(folder)
        return False
    dot_git = folder / ".git"
    if dot_git.is_symlink():
        raise _not_a_lab(folder, "has a link in place of its .git folder")
    if dot_git.is_file():
        raise _not_a_lab(folder, "is a linked worktree or a submodule of another git repository")
    if not dot_git.is_dir():
        if {"HEAD", "objects", "refs"} <= set(names):
            raise StoreError(
                f"{folder} is a bare git repository, not a lab; clone it and open the clone.", cause="not_a_lab"
            )
        _refuse_special(folder)
        more = ", ..." if len(names) > _SHOWN else ""
        raise _not_a_lab(folder, f"holds other files ({', '.join(names[:_SHOWN])}{more})")
    git = Git(folder)
    main, blob = git.resolve_many([f"{BASELINE}^{{commit}}", f"{BASELINE}:{MANIFEST}"])
    if main is None and _has_refs(git):
        raise StoreError(
            f"The lab {folder} has lost its branch 'main', where its baseline is: rename it back if you renamed it "
            "(`git branch -m NAME main`), or point it at a commit (`git update-ref refs/heads/main COMMIT`).",
            cause="corrupt",
        )
    if main is None or not _is_ours(git, main):
        if main is None or blob is None:
            raise _not_a_lab(folder, f"is a git repository without a branch 'main' that holds a {MANIFEST}")
        try:
            read_manifest(decode(MANIFEST, git.objects([blob]).get(blob, b"")))
        except HarnessFileError as error:
            raise _not_a_lab(folder, f"is a git repository whose {MANIFEST} does not describe a harness") from error
    return True


def looks_like_lab(folder: Path) -> bool:
    """Whether a file below ``folder`` may have come with a lab, told from names alone."""
    return os.path.lexists(folder / ".git") and (folder / MANIFEST).is_file()


def refuse_moving(folder: Path) -> None:
    """Raise StoreError unless the lab in ``folder`` may be moved aside: harnesslab made it, and it is not the working folder."""
    _refuse_special(folder)
    with contextlib.suppress(OSError):  # the working folder may be gone
        here = Path.cwd().resolve()
        if here.is_relative_to(folder):
            raise StoreError(
                f"{folder} is, or contains, the working folder of this process, so it is not moved aside; "
                "start over from another folder."
            )
    git = Git(folder)
    if not _is_ours(git, git.resolve_many([BASELINE])[0]):
        raise StoreError(
            f"{folder} was not made by harnesslab, so it is not moved aside; move it yourself or {_INSTEAD}.",
            cause="not_a_lab",
        )


def move_aside(folder: Path) -> Path:
    """Rename a lab's folder to the first free ``NAME.n``, after :func:`refuse_moving`. Raises StoreError."""
    number = 1
    while os.path.lexists(aside := folder.with_name(f"{folder.name}.{number}")):
        number += 1
    try:
        return folder.rename(aside)
    except OSError as error:
        raise StoreError(f"{folder} cannot be moved aside: {error.strerror}") from error


def _is_ours(git: Git, main: str | None) -> bool:
    """Whether harnesslab made the repository: its refs, or how its history starts. A shallow clone is known by its newest commit."""
    if main is None:
        return False
    if _has_refs(git):
        return True
    roots = git.text("rev-list", "--max-parents=0", "--max-count=20", main, "--").split()
    commits = read_commits(git, [*roots, main])
    return any(commit.meta for commit in commits) or any(
        commit.subject == START for commit in commits if not commit.parents
    )


def _has_refs(git: Git) -> bool:
    return bool(git.text("for-each-ref", "--count=1", "--format=%(refname)", *_REFS))


def _names(folder: Path) -> list[str]:
    """What is in the folder, sorted; empty where nothing is there."""
    try:
        return sorted(itertools.islice((entry.name for entry in folder.iterdir()), 10_000))
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        if folder.exists():
            raise _not_a_lab(folder, "is a file") from None
        raise _not_a_lab(folder, "is below a file") from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror}.") from error


def _refuse_special(folder: Path) -> None:
    """A lab does not take the place of somebody's home, or of the root."""
    home = None
    with contextlib.suppress(RuntimeError, OSError):
        home = Path.home().resolve()
    if folder == Path(folder.anchor):
        raise _not_a_lab(folder, "is the root of the file system")
    if home is not None and (folder == home or home.is_relative_to(folder)):
        raise _not_a_lab(folder, "is, or holds, your home folder")


def _not_a_lab(folder: Path, why: str) -> StoreError:
    return StoreError(f"{folder} {why}, so it is not a lab; {_INSTEAD}.", cause="not_a_lab")


def near(path: Path) -> str:
    """The path as a reader of the notebook knows it: relative if it is below the working folder."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
