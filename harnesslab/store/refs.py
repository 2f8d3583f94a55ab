"""Names: refs, candidate ids, and the paths of files inside a lab. All untrusted until checked here."""

from __future__ import annotations

import re
import secrets
import threading
import time
import unicodedata
from collections.abc import Iterable
from typing import Literal

from harnesslab.errors import StoreError
from harnesslab.plaintext import visible

BASELINE = "refs/heads/main"
NOTES = "refs/notes/harnesslab"
SEALED_NOTES = "refs/notes/harnesslab-sealed"
SEALED_TAG = "refs/tags/harnesslab-sealed"
CANDIDATES = "refs/harnesslab/candidates/"
PROMOTED = "refs/harnesslab/promoted/"
REJECTED = "refs/harnesslab/rejected/"

State = Literal["pending", "measured", "undecided", "promoted", "rejected"]
"""What became of a candidate; what each state means is a matter of `harnesslab.ledger`."""

FOLDERS: dict[State, str] = {
    "pending": CANDIDATES,
    "measured": CANDIDATES,
    "undecided": CANDIDATES,
    "promoted": PROMOTED,
    "rejected": REJECTED,
}
"""The prefix of a candidate's ref in each state; where several share one, the note names the state."""

STATES: tuple[State, ...] = tuple(FOLDERS)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: sorts as it counts
_ID = re.compile(rf"[{_ALPHABET}]{{12}}")
_OBJECT = re.compile(r"[0-9a-f]{7,64}")
_REF_BAD = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(/|$)|/\.|\.$|/$")
_PATH_BAD = re.compile(r"[\x00-\x1f\x7f\\]")

_IS_GIT = re.compile(r"(\.git|git~[0-9]+)[. ]*(:|$)", re.IGNORECASE)
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""What some file systems leave out when they compare names: with it, `.git` can be written in many ways."""

MAX_NAME_BYTES = 255
"""Bytes of one name in UTF-8: more cannot be written on most file systems."""
MAX_PATH_BYTES = 1024
_WINDOWS_BAD = frozenset('<>:"|?*')
_WINDOWS_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])\s*(\.|$)", re.IGNORECASE
)

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


def is_id(name: str) -> bool:
    """Whether a name has the form of a candidate's id."""
    return _ID.fullmatch(name) is not None


def check_id(candidate_id: str) -> str:
    """The id itself if it has the form of one, else `StoreError`."""
    if not isinstance(candidate_id, str) or not _ID.fullmatch(candidate_id):
        raise StoreError(
            f"{str(candidate_id)[:60]!r} is not a candidate id; ids have 12 characters, as `candidates()` lists them.",
            cause="not_found",
        )
    return candidate_id


def check_name(name: str) -> str:
    """A full ref name, `HEAD`, or an abbreviated or full object id; anything else is a `StoreError`.

    Revision syntax (`main~2`, `@{1}`, `:path`) and options are refused on purpose: the name may come
    from a browser.
    """
    is_ref = name == "HEAD" or (name.startswith("refs/") and not _REF_BAD.search(name))
    if not is_ref and not _OBJECT.fullmatch(name):
        raise StoreError(f"{name[:80]!r} is not a full ref name (refs/...), HEAD or a commit id.", cause="bad_ref")
    return name


def stays_inside(path: str) -> bool:
    """Is it a relative path with forward slashes that stays in the lab and out of `.git` and `.harnesslab`?"""
    parts = path.split("/")
    return not (
        _PATH_BAD.search(path)
        or any(part in ("", ".", "..") for part in parts)
        or any(_IS_GIT.match(_IGNORED.sub("", part)) for part in parts)
        or parts[0].lower() == ".harnesslab"
    )


def check_path(path: str) -> str:
    """The path itself if every common file system can hold it inside a lab, else `StoreError` with the reason."""
    reason = _unusable(path)
    if reason:
        raise StoreError(f"{str(path)[:200]!r} cannot be a file of a harness: {reason}.", cause="proposal")
    return path


def _unusable(path: str) -> str:
    if not isinstance(path, str):
        return "a path is text, such as 'skill/plan.yaml'"
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError:
        return "its name is not UTF-8; rename it"
    if not stays_inside(path):
        return "use a relative path with '/', inside the lab"
    if visible(path) != path or _IGNORED.search(path) or any(char in path for char in "\t\n"):
        return "its name has invisible or control characters; leave them out"
    parts = path.split("/")
    if size > MAX_PATH_BYTES or any(len(part.encode("utf-8")) > MAX_NAME_BYTES for part in parts):
        return f"a name has at most {MAX_NAME_BYTES} bytes and a path {MAX_PATH_BYTES}; shorten it"
    bad = next((char for char in path if char in _WINDOWS_BAD), None)
    if bad:
        return f"Windows does not allow {bad} in a name; rename it"
    for part in parts:
        if part[-1] in ". " or _WINDOWS_DEVICE.match(part):
            return f"Windows does not allow the name {part!r}; rename it"
    return ""


def clash(paths: Iterable[str], changed: Iterable[str]) -> tuple[str, str] | None:
    """Two names of which a file system that ignores case or the form of accents can only hold one: one that is `changed` first."""
    taken: dict[str, str] = {}
    for path in [*paths, *changed]:
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[:count])
            other = taken.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
            if other != name:
                return name, other
    return None
