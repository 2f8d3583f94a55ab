"""Text from outside on its way to a terminal or a page: nothing in it moves the cursor or turns the reading direction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and line feed: an escape sequence can rewrite what a terminal shows
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, overrides and isolates of direction (UAX #9)
    "\u2028\u2029\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with U+FFFD in place of controls (tab and line feed excepted), marks of direction and lone surrogates."""
    return _UNSEEN.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same with every run of white space as one space."""
    return visible(" ".join(text.split()))


def markdown(text: str) -> str:
    """The same as Markdown that shows it word for word: subjects and reasons may come from anybody."""
    return "".join("\\" + char if char in "\\`*_[]<>#|" else char for char in one_line(text))


def in_words(error: BaseException) -> str:
    """Type and text of an exception from code that is not ours, whose text may be long or raise itself."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the exception's own code; there is nobody else to tell
        text = "an exception without a text"
    return f"{type(error).__name__}: {text[:500]}".encode("utf-8", "replace").decode()


def clip(text: str, width: int = 80) -> str:
    """The same on one line of at most ``width`` characters; a cut one ends with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1] + "…"


def shown(value: object, width: int = 120) -> str:
    """A value as the cell of a table: nothing for ``None``, three digits of a float (thousands in full), one line of a text."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return "" if value is None else clip(str(value), width)


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows of equal length as lines, each column as wide as its widest cell."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def counted(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun if number == 1 else noun + 's'}"
