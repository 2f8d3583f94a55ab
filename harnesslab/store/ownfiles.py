"""The few files that the library itself keeps in a lab's folder: plain ones with one name, so that no write leads out of the lab.

A lab may hold links of somebody else. A file is therefore never written in place but replaced by a new one, which
replaces a link as well. The folders above it are opened one by one without following links, and files that others write in
place (SQLite, git, the operating system's locks) are checked before they get them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from harnesslab.errors import StoreError

MAX_BYTES = 1_000_000
"""A larger file is none of those that are read here."""

_BY_FOLDER = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def refuse_links(top: Path, *names: str) -> None:
    """Raise StoreError where one of `names`, files below `top` with forward slashes, or a folder on the way to one, is not
    a plain one of the lab's own: a link, a special file, or a file with a second name elsewhere. Missing ones are fine."""
    for name in names:
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            place = top.joinpath(*parts[:depth])
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                refuse_entry(place, place.lstat())


def refuse_entry(
    place: Path, found: os.stat_result, instead: str = "replace it with one of the lab's own, or delete it"
) -> None:
    """As `refuse_links`, for one place whose `lstat` is `found`; `instead`: what to do about a link."""
    if stat.S_ISREG(found.st_mode):
        if found.st_nlink > 1:
            raise StoreError(
                f"{place} has a second name elsewhere (a hard link), and writing would change that file, too; "
                "copy the lab with `cp -a` and open the copy.",
                cause="refused",
            )
    elif not stat.S_ISDIR(found.st_mode):
        raise StoreError(
            f"{place} is a link or a special file, so nothing is read or written there; {instead}.",
            cause="refused",
        )


def read(top: Path, name: str) -> bytes:
    """The content of a small file. Raises OSError (FileNotFoundError) or, as `refuse_links`, StoreError."""
    refuse_links(top, name)
    file = os.open(top / name, os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY)
    with os.fdopen(file, "rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise StoreError(f"{top / name} is larger than {MAX_BYTES // 1_000_000} MB; move it away.", cause="refused")
    return data


def write(top: Path, name: str, data: bytes) -> None:
    """Replace the file `name` below `top` as a whole, safe from a kill; folders are made. Raises OSError or StoreError.

    A link in the file's own place is replaced; one in place of a folder is a StoreError.
    """
    *folders, last = name.split("/")
    scratch = f"{last}.{secrets.token_hex(6)}.new"
    with _opened(top, folders) as (prefix, folder):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _BINARY
        file = os.open(prefix + scratch, flags, 0o666, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
            os.replace(prefix + scratch, prefix + last, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(prefix + scratch, dir_fd=folder)
            raise


@contextlib.contextmanager
def _opened(top: Path, folders: list[str]) -> Iterator[tuple[str, int | None]]:
    """Make the folders; gives what to put before a name in the last one, and that folder, open, where the system can name files by it."""
    if not _BY_FOLDER:
        refuse_links(top, *(["/".join(folders)] if folders else []))
        top.joinpath(*folders).mkdir(parents=True, exist_ok=True)
        yield f"{top.joinpath(*folders)}{os.sep}", None
        return
    with contextlib.ExitStack() as opened:
        folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
        opened.callback(os.close, folder)
        for name in folders:
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
                folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, dir_fd=folder)
            except OSError:
                refuse_links(top, "/".join(folders))  # the sentence, where a link is what is wrong
                raise
            opened.callback(os.close, folder)
        yield "", folder
