"""A small table that shows itself as text and as escaped HTML, and becomes a DataFrame on request."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harnesslab.extras import comes_with
from harnesslab.markup import paragraph, table
from harnesslab.plaintext import clip, columns, shown

if TYPE_CHECKING:
    import pandas as pd

LEAST = 16
"""Characters that a column keeps where the terminal is too narrow for the table."""
ROW_LIMIT = 60


class Table(Sequence[Mapping[str, Any]]):
    """Rows of equal keys. Long cells and long tables are cut when shown, never in the data."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], *, title: str = "", columns: Sequence[str] | None = None):
        self.rows = [dict(row) for row in rows]
        self.title = title
        self.notes: list[str] = []
        """Sentences shown below the table."""
        self.columns = list(columns) if columns is not None else list(self.rows[0]) if self.rows else []

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def to_frame(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame (extra ``lab``)."""
        with comes_with("lab"):
            import pandas as pd

        return pd.DataFrame(self.rows, columns=self.columns or None)

    def __repr__(self) -> str:
        if not self.rows:
            return f"{self.title}: nothing yet" if self.title else "nothing yet"
        cells = [[shown(row.get(column)) for column in self.columns] for row in self.rows[:ROW_LIMIT]]
        widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(self.columns)]
        _fit(widths, _room())
        cells = [[clip(text, width) for text, width in zip(line, widths, strict=True)] for line in cells]
        lines = [self.title] if self.title else []
        return "\n".join([*lines, *columns([self.columns, ["-" * width for width in widths], *cells]), *self._rest()])

    def _repr_html_(self) -> str:
        if not self.rows:
            return str(paragraph(f"{self.title or 'Table'}: nothing yet"))
        rows = ([row.get(column) for column in self.columns] for row in self.rows[:ROW_LIMIT])
        return str(table(self.columns, rows, caption=self.title, below=self._rest()))

    def _rest(self) -> list[str]:
        hidden = len(self.rows) - ROW_LIMIT
        more = [f"... and {hidden} more rows; .to_frame() has them all"] if hidden > 0 else []
        return more + self.notes


def _room() -> int:
    """Characters in a line of the reader's terminal; 0, for any number, where there is none, as in a notebook."""
    if not os.environ.get("COLUMNS") and not sys.stdout.isatty():
        return 0
    return shutil.get_terminal_size((0, 0)).columns


def _fit(widths: list[int], room: int) -> None:
    """Take from the widest columns until a line fits, or until none is wider than it must be."""
    while room and sum(widths) + 2 * (len(widths) - 1) > room and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
