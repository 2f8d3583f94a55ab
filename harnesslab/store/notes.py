"""Verdicts as git notes: one JSON document on each judged commit, readable with `git notes --ref=harnesslab show`.

`git notes add` moves its ref by itself. The verdict has to appear together with the move of the
candidate, so the notes tree is written here and its ref joins the same transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from harnesslab.plainjson import loads
from harnesslab.store.git import DIFF_TREE, Git
from harnesslab.store.objects import compact_json, write_commit

_Tree = dict[str, tuple[str, str, str]]  # name -> mode, kind, id


def write_note(git: Git, notes: str | None, commit: str, note: Mapping[str, Any], summary: str) -> str:
    """A new notes commit on top of `notes` in which `commit` carries `note`; returns its id, moves no ref."""
    blob = git.write_blob(
        json.dumps(json.loads(compact_json(dict(note), "verdict")), indent=1, ensure_ascii=False).encode() + b"\n"
    )
    root = _read_tree(git, notes) if notes else {}
    tree = _insert(git, root, commit, blob)
    return write_commit(git, tree, (notes,) if notes else (), summary)


def _insert(git: Git, tree: _Tree, rest: str, blob: str, depth: int = 0) -> str:
    # git itself spreads notes over folders of two hex digits and finds them at any depth. One level
    # (256 folders) is always used here; deeper ones that git made are followed.
    head, tail = rest[:2], rest[2:]
    tree.pop(rest, None)
    below = tree.get(head)
    if below is not None and below[1] == "tree":
        tree[head] = ("040000", "tree", _insert(git, _read_tree(git, below[2]), tail, blob, depth + 1))
    elif depth == 0:
        tree[head] = ("040000", "tree", _write_tree(git, {tail: ("100644", "blob", blob)}))
    else:
        tree[rest] = ("100644", "blob", blob)
    return _write_tree(git, tree)


def _read_tree(git: Git, name: str) -> _Tree:
    tree: _Tree = {}
    for entry in git.text("ls-tree", "-z", "--end-of-options", name).split("\0"):
        if entry:
            head, _, path = entry.partition("\t")
            mode, kind, object_id = head.split(" ")
            tree[path] = (mode, kind, object_id)
    return tree


def _write_tree(git: Git, tree: _Tree) -> str:
    lines = "".join(f"{mode} {kind} {object_id}\t{name}\0" for name, (mode, kind, object_id) in tree.items())
    return git.text("mktree", "-z", input=lines.encode(), write=True)


def changed_notes(git: Git, old: str | None, new: str | None) -> dict[str, str | None]:
    """Commit id to the blob of its note (None: removed), for what differs between two notes commits."""
    if new is None or old == new:
        return {}
    if old is None:
        entries = git.text("ls-tree", "-r", "-z", "--end-of-options", new, deadline=120).split("\0")
        listed = (entry.partition("\t") for entry in entries if entry)
        return {path.replace("/", ""): head.split(" ")[2] for head, _, path in listed}
    fields = git.text(*DIFF_TREE, "-z", "--end-of-options", old, new, deadline=120).split("\0")
    changed: dict[str, str | None] = {}
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        blob, status = head.split(" ")[3:5]
        key = path.replace("/", "")
        if status != "D":
            changed[key] = blob
        else:
            changed.setdefault(key, None)
    return changed


def parse_note(data: bytes | None) -> dict[str, Any] | None:
    """A note's JSON, or None where there is none or a person wrote something else there."""
    if data is None:
        return None
    try:
        note = loads(data.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(note, dict):
        return None
    return {key: value for key, value in note.items() if value is None or _SHAPES.get(key, _anything)(value)}


def _anything(value: object) -> bool:
    return True


def _text(value: object) -> bool:
    return isinstance(value, str)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _facts(value: object) -> bool:
    return isinstance(value, Mapping)


def _records(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) for each in value)


def _flips(value: object) -> bool:
    return _records(value) or _facts(value)


def _lists(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, list) for each in value.values())


_SHAPES: dict[str, Callable[[object], bool]] = {
    "state": _text, "history": _records, "undone": _records, "solved": _lists, "flips": _flips, "tasks": _count,
    "metrics": _facts, "statistics": _facts, "cost": _facts, "identity": _facts, "runs": _facts, "fired": _facts, "who": _text,
    "criterion": _text, "decided_by": _text, "decision": _text, "override": _flag, "decided_at": _number, "delta": _number,
}  # fmt: skip
"""The fields that are read by name, and what they hold. A field of another shape was not written by us and is left out."""


def read_note(git: Git, notes: str | None, commit: str) -> dict[str, Any] | None:
    """The note of one commit at the notes commit `notes`."""
    if notes is None:
        return None
    paths = [
        f"{notes}:{commit[:2]}/{commit[2:]}",
        f"{notes}:{commit}",
        f"{notes}:{commit[:2]}/{commit[2:4]}/{commit[4:]}",
    ]
    found = next((name for name in git.resolve_many(paths) if name), None)
    return parse_note(git.objects([found]).get(found)) if found else None
