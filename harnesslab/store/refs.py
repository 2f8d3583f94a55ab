"""Names: refs, candidate ids, and the paths of files inside a lab. All untrusted until checked here."""

from __future__ import annotations

import re
import secrets
import threading
import time
from typing import Literal

from harnesslab.errors import StoreError

BASELINE = "refs/heads/main"
NOTES = "refs/notes/harnesslab"
CANDIDATES = "refs/harnesslab/candidates/"
PROMOTED = "refs/harnesslab/promoted/"
REJECTED = "refs/harnesslab/rejected/"

State = Literal["pending", "undecided", "promoted", "rejected"]
"""What became of a candidate. `pending`: not judged yet; `undecided`: the measurement could not tell."""

STATES: tuple[State, ...] = ("pending", "undecided", "promoted", "rejected")

FOLDERS: dict[State, str] = {"pending": CANDIDATES, "undecided": CANDIDATES, "promoted": PROMOTED, "rejected": REJECTED}
"""Under which prefix a candidate's ref lies; pending and undecided share one, the verdict tells them apart."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: sorts as it counts
_ID = re.compile(rf"[{_ALPHABET}]{{12}}")
_OBJECT = re.compile(r"[0-9a-f]{7,64}")
_REF_BAD = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(/|$)|/\.|\.$|/$")
_PATH_BAD = re.compile(r"[\x00-\x1f\x7f\\]")

_last = 0
_guard = threading.Lock()


def new_id() -> str:
    """A candidate id: 12 characters, unique, and sorted by the time of its making."""
    global _last
    with _guard:
        _last = max(_last + 1, time.time_ns() // 1_000_000)
        stamp = _last
    digits = [_ALPHABET[(stamp >> shift) & 31] for shift in range(40, -1, -5)]
    return "".join(digits) + "".join(secrets.choice(_ALPHABET) for _ in range(3))


def check_id(candidate_id: str) -> str:
    """The id itself if it has the form of one, else `StoreError`."""
    if not isinstance(candidate_id, str) or not _ID.fullmatch(candidate_id):
        raise StoreError(
            f"{str(candidate_id)[:60]!r} is not a candidate id; ids have 12 characters, as `candidates()` lists them."
        )
    return candidate_id


def check_name(name: str) -> str:
    """A full ref name, `HEAD`, or an abbreviated or full object id; anything else is a `StoreError`.

    Revision syntax (`main~2`, `@{1}`, `:path`) and options are refused on purpose: the name may come
    from a browser.
    """
    is_ref = name == "HEAD" or (name.startswith("refs/") and not _REF_BAD.search(name))
    if not is_ref and not _OBJECT.fullmatch(name):
        raise StoreError(f"{name[:80]!r} is neither a full ref name (refs/...), HEAD nor a commit id.")
    return name


def check_path(path: str) -> str:
    """A relative path with forward slashes that stays in the lab and out of `.git` and `.harnesslab`."""
    parts = path.split("/")
    bad = (
        not path
        or _PATH_BAD.search(path)
        or any(part in ("", ".", "..") for part in parts)
        or any(part.lower().rstrip(". ") in (".git", "git~1") for part in parts)
        or parts[0].lower() == ".harnesslab"
    )
    if bad:
        raise StoreError(
            f"{path[:200]!r} cannot be a file of a harness: use a relative path with '/', inside the lab.",
            cause="proposal",
        )
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise StoreError(f"The file name {path[:200]!r} is not UTF-8; rename it.", cause="proposal") from None
    return path
