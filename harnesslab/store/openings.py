"""Openings of the sealed split, as git notes: on the commit that was opened with, one line of JSON for each opening.

They are in git and not only in the record database, so that neither a clone nor a lab that starts over counts from zero.
A lab that starts over keeps the openings of the one in whose place it comes, and the looks at its gate, on its first commit.
``git notes --ref=harnesslab-sealed show COMMIT`` prints them, and ``git notes merge -s cat_sort_uniq`` merges those of
two clones. ``git clone`` copies tags but no notes, so the tag ``harnesslab-sealed`` follows the ref of the notes.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harnesslab.redaction import scrub_json
from harnesslab.store.core import Core
from harnesslab.store.git import Git
from harnesslab.store.journal import Journal
from harnesslab.store.moves import RefMove
from harnesslab.store.objects import compact_json, write_commit
from harnesslab.store.refs import SEALED_NOTES, SEALED_TAG

_REFS = (SEALED_NOTES, SEALED_TAG)
LIMIT = 10_000
"""Notes and openings that are read at most: whatever a repository holds, reading it ends."""
MAX_BYTES = 4_000_000
"""A larger note is not read."""
SEALED = "sealed"
"""The split of an opening that names none. A lab that starts over also keeps the looks at its gate here."""
_FIELDS: Mapping[str, tuple[type, ...]] = {
    "id": (str,), "at": (int, float), "commit": (str,), "backbone": (dict,), "who": (str,),
    "environment": (str,), "version": (str,), "lab": (str,), "split": (str,),
}  # fmt: skip
_OPTIONAL: Mapping[str, Any] = {"environment": "", "version": "", "lab": "", "split": SEALED}
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LATEST = 253_402_300_799
"""The last second that a date can name."""


def read_openings(git: Git) -> list[dict[str, Any]]:
    """All openings on record in git, oldest first, each once. Lines that are no opening are left out."""
    blobs = [blob for found in _notes(git).values() for blob in found]
    lines = [line for text in _texts(git, blobs).values() for line in text]
    return _unique(map(_parse, lines))


def all_openings(git: Git, journal: Journal) -> list[dict[str, Any]]:
    """Those in git together with those that only an older record database has, oldest first, each once."""
    return _unique([*map(_from_event, journal.events("sealed", limit=LIMIT)), *read_openings(git)])


def write_openings(core: Core, openings: Sequence[Mapping[str, Any]], on: str | None = None) -> None:
    """Add openings to the notes of their commits; ``on``: to that of this one. Those that are there stay as they are."""
    with core.writing("record an opening of the sealed split"):
        git, notes = core.git, _notes(core.git)
        have = {opening["id"] for opening in read_openings(git)}
        fresh: dict[str, list[str]] = {}
        for opening in openings:
            if opening["id"] not in have:
                line = compact_json(scrub_json({**opening}), "opening")
                fresh.setdefault(on or opening["commit"], []).append(line)
        merged = {}
        for commit in {*notes, *fresh}:
            blobs = notes.get(commit, [])
            if commit in fresh or len(blobs) > 1:
                lines = dict.fromkeys(line for text in _texts(git, blobs).values() for line in text)
                blobs = [git.write_blob("".join(f"{line}\n" for line in [*lines, *fresh.get(commit, ())]).encode())]
            merged[commit] = blobs[0]
        entries = "".join(f"100644 blob {blob}\t{commit}\0" for commit, blob in sorted(merged.items()))
        tree = git.text("mktree", "-z", input=entries.encode(), write=True)
        refs = git.resolve_many(_REFS)
        parents = tuple(dict.fromkeys(ref for ref in refs if ref))
        count = len(have) + sum(map(len, fresh.values()))
        commit = write_commit(git, tree, parents, f"Openings of the sealed split: {count}")
        core.moves.apply([RefMove(ref, old, commit) for ref, old in zip(_REFS, refs, strict=True)], "record an opening")
        core.moves.done()


def new_opening(commit: str, **about: Any) -> dict[str, Any]:
    """An opening that happens now; ``about``: ``backbone``, ``who``, ``environment``, ``version``."""
    opening = {"at": time.time(), "commit": commit, **about}
    return {"id": _digest(opening), **opening}


def _notes(git: Git) -> dict[str, list[str]]:
    """Commit to the blobs of its notes: one, or two where a clone and its origin have gone different ways."""
    notes: dict[str, list[str]] = {}
    for top in dict.fromkeys(filter(None, git.resolve_many(_REFS))):
        listed = git.text("ls-tree", "-r", "-l", "-z", "--end-of-options", top).split("\0")
        for head, _, path in (entry.partition("\t") for entry in listed[:LIMIT] if entry):
            _, kind, blob, size = head.split()
            if kind == "blob" and int(size) <= MAX_BYTES and blob not in notes.setdefault(path.replace("/", ""), []):
                notes[path.replace("/", "")].append(blob)
    return {commit: blobs for commit, blobs in notes.items() if blobs}


def _texts(git: Git, blobs: Iterable[str]) -> dict[str, list[str]]:
    return {blob: data.decode("utf-8", "replace").splitlines() for blob, data in git.objects(blobs).items()}


def _parse(line: str) -> dict[str, Any] | None:
    try:
        return _checked(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _checked(data: Any) -> dict[str, Any] | None:
    """The opening in a JSON value, which may be anybody's; None where it is none."""
    if not isinstance(data, dict):
        return None
    opening = {**_OPTIONAL, **{key: value for key, value in data.items() if key in _FIELDS}}
    if any(not isinstance(opening.get(key), kinds) for key, kinds in _FIELDS.items()):
        return None
    return opening if 0 <= opening["at"] <= _LATEST and _COMMIT.fullmatch(opening["commit"]) else None


def _from_event(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """An opening as older versions recorded it; the same event always gets the same id."""
    if not isinstance(event["data"], dict):
        return None
    opening = {"at": event["at"], **event["data"]}
    return _checked({"id": _digest(opening), **opening})


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def _unique(openings: Iterable[dict[str, Any] | None]) -> list[dict[str, Any]]:
    known = {opening["id"]: opening for opening in openings if opening is not None}
    return sorted(known.values(), key=lambda opening: (opening["at"], opening["id"]))[:LIMIT]
