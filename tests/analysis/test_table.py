"""Tables as text: they fit the terminal that they are printed on."""

from __future__ import annotations

import pytest

from harnesslab.analysis.table import LEAST, Table

ROWS = [{"id": "1m8nz63wcryv", "what": "a long sentence " * 6, "solved": 3}]


def test_a_terminal_cuts_the_widest_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = repr(Table(ROWS)).splitlines()
    assert max(map(len, lines)) <= 60
    assert "1m8nz63wcryv" in lines[2] and "…" in lines[2] and lines[2].endswith("3")
    monkeypatch.setenv("COLUMNS", "20")
    assert len(repr(Table(ROWS)).splitlines()[1].split("  ")[1]) == LEAST


def test_without_a_terminal_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert ("a long sentence " * 6).strip() in repr(Table(ROWS))
