"""Cut SQL that may not parse into tokens, and know for each token where in the statement it stands.

A scanner and not a parser, because the SQL that needs help does not parse: ``SELECT Player Name FROM Squash Ranking``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMPARE = _words("= == != <> < > <= >= like in is between not glob regexp")
"""Symbols and words that compare; a value follows."""
TABLES = _words("from join update into table")
"""Words that a table's name follows."""
LISTS = TABLES | _words("select by set")
"""Clauses in which names are listed."""
CLAUSES = LISTS | _words("where on having when then else values limit")
"""Words that open a clause."""
RESERVED = CLAUSES | _words("""add all alter and as asc between case check collate column commit constraint create cross current_date
    current_time default delete desc distinct drop end escape except exists foreign full group if in index inner insert
    intersect is key left like natural not null offset or order outer primary references right rollback to
    transaction union unique using with""")
"""Words that cannot stand bare as a name in the usual dialects."""
AGGREGATES = _words("count max min sum avg")

REST = r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*(?:'|\Z))|(?P<double>"(?:[^"]|"")*(?:"|\Z))
|(?P<tick>`[^`]*(?:`|\Z)|\[[^\]\n]*\])|(?P<word>\w+)|(?P<space>\s+)|(?P<symbol><>|!=|<=|>=|==|\|\||.)"""
"""Every token but the known names, which the caller puts in front as a group ``known``."""


@dataclass(slots=True)
class Token:
    """``name`` is the known identifier that the token is or stands for; ``low`` its text in lower case."""

    kind: str
    text: str
    name: str
    low: str
    inner: str


def tokens(sql: str, scan: re.Pattern[str], name_of: Callable[[str], str]) -> list[Token]:
    """The tokens of ``sql``; joined together again they are ``sql``."""
    found = []
    for match in scan.finditer(sql):
        kind, text = match.lastgroup or "symbol", match.group()
        closed = len(text) > 1 and text[-1] == {"[": "]"}.get(text[0], text[0])
        inner = (text[1:-1] if closed else "") if kind in ("text", "double", "tick") else text
        name = name_of(inner) if inner and kind not in ("space", "comment", "symbol") else ""
        found.append(Token(kind, text, name, text.lower(), inner))
    return found


class Statement:
    """The tokens that matter, each with its neighbours, its clause and the bracket around it."""

    def __init__(self, solid: Sequence[Token]) -> None:
        self.tokens = solid
        self.clause: list[str] = []
        self._opener: list[int | None] = []
        self.aliases = {solid[i + 1].low for i, t in enumerate(solid[:-1]) if t.low == "as"}
        clauses, openers = [""], [-1]
        for index, token in enumerate(solid):
            if token.text == ")" and len(openers) > 1:
                clauses.pop()
                openers.pop()
            elif token.kind == "word" and token.low in CLAUSES and not self._is_name(index):
                clauses[-1] = token.low
            self.clause.append(clauses[-1])
            self._opener.append(openers[-1] if openers[-1] >= 0 else None)
            if token.text == "(":
                clauses.append(clauses[-1])
                openers.append(index)

    def before(self, index: int) -> str:
        """The token before, in lower case; empty at the start."""
        return self.tokens[index - 1].low if index > 0 else ""

    def after(self, index: int) -> str:
        """The token after, in lower case; empty at the end."""
        return self.tokens[index + 1].low if index + 1 < len(self.tokens) else ""

    def wants_name(self, index: int) -> bool:
        """Whether SQL wants an identifier, and surely no value, where this quoted text stands."""
        before, after, clause = self.before(index), self.after(index), self.clause[index]
        if before in COMPARE or before in ("as", "limit", "||") or clause in ("values", "then", "else", "limit"):
            return False
        call = self._call(index)
        if call is not None:
            first = before == "(" or (before == "distinct" and self.before(index - 1) == "(")
            return first and self.before(call) not in COMPARE
        if after in COMPARE:
            return True
        if clause == "set":
            return False
        return clause in LISTS and not self._in_values(index)

    def wants_reserved(self, index: int) -> bool:
        """Whether a bare reserved word stands here as a name."""
        before, after = self.before(index), self.after(index)
        if before in TABLES:
            return True
        if before in ("select", "distinct", ",", "by", "(", ".") and after in (
            ",",
            ")",
            ";",
            "",
            "from",
            "asc",
            "desc",
        ):
            return True
        return before in ("where", "and", "or", "on", "having", "set", ",", "(", "when", ".") and after in COMPARE - {
            "not"
        }

    def wants_number(self, index: int) -> bool:
        """Whether a bare number stands here as the name of a column: ``WHERE 2010 > 5``, ``SELECT 2010 FROM``."""
        if self.before(index) in COMPARE or self._in_values(index):
            return False
        if self.after(index) in COMPARE:
            return True
        # A short number in a list is a value, or the position of a column in ORDER BY 2.
        call = self._call(index)
        listed = self.clause[index] in ("select", "into", "by") and len(self.tokens[index].text) > 3
        return listed and (call is None or self.tokens[call].low in AGGREGATES)

    def _is_name(self, index: int) -> bool:
        return bool(self.tokens[index].name) and self.wants_reserved(index)

    def _inside(self, index: int) -> int | None:
        """The bracket around a token, if it does not hold a query of its own."""
        opener = self._opener[index]
        return None if opener is None or self.after(opener) in ("select", "with") else opener

    def _call(self, index: int) -> int | None:
        """The name of the function whose brackets the token stands in; None in a list of columns or a plain bracket."""
        opener = self._inside(index)
        if opener is None or opener == 0:
            return None
        head = self.tokens[opener - 1]
        if head.kind not in ("word", "known") or head.low in RESERVED - {"if", "left", "right"}:
            return None
        return None if self.before(opener - 1) in ("into", "table") else opener - 1

    def _in_values(self, index: int) -> bool:
        """Whether the token stands in the brackets of IN (...)."""
        opener = self._inside(index)
        return opener is not None and self.before(opener) == "in"
