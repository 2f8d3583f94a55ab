"""What a note says and how it is written is known to the ledger alone; everybody else calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harnesslab
from harnesslab.ledger import Verdict, read_verdict, solved_counts, who_decided

PACKAGE = Path(harnesslab.__file__).parent
CALLERS = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path.relative_to(PACKAGE).parts[0] not in ("ledger", "store", "labextension")
)
NOTE_KEYS = {"decided_by", "override", "overrides", "criterion", "decision", "undone", "history"}
WRITERS = {"settle", "restore", "reapply"}
"""Methods of the store that move a candidate; the ledger asks first whether that is allowed."""


def raw_reads(tree: ast.AST) -> Iterator[str]:
    """Keys of a note that are read out of a dict, and calls of the store's writers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            if node.func.attr == "get" and isinstance(first, ast.Constant) and first.value in NOTE_KEYS:
                yield f"line {node.lineno}: .get({first.value!r})"
            if node.func.attr in WRITERS and "repo" in ast.unparse(node.func.value):
                yield f"line {node.lineno}: .{node.func.attr}()"
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in NOTE_KEYS:
            yield f"line {node.lineno}: [{node.slice.value!r}]"


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_callers_read_verdicts_through_the_ledger(path: Path) -> None:
    assert list(raw_reads(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_a_raw_read_is_found() -> None:
    found = ast.parse("a = note.get('decided_by')\nb = note['override']\nself.repo.settle(x, 'promoted', {})")
    assert len(list(raw_reads(found))) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NOTES = st.dictionaries(
    st.sampled_from([*Verdict.__dataclass_fields__, "override", "state", "reason", "delta", "decided_at"]), JSON
)


@settings(deadline=None)
@given(NOTES)
def test_any_note_can_be_read(note: dict[str, Any]) -> None:
    verdict = read_verdict(note | {"criterion": "Net"})
    assert verdict is not None and verdict.decider.name
    assert verdict.counts is None or len(verdict.counts) == 3
    assert str(who_decided(note) or "") or note.get("state") in ("pending", "measured") or not note
    solved_counts(note)
    if not note.get("override"):
        again = Verdict.from_json(verdict.to_json())
        assert again.to_json() == verdict.to_json() or verdict.value != verdict.value
