"""Quote known identifiers in SQL that a model wrote. Used by the ``quote`` kind.

A bare identifier gets quotes where it needs them. A text in the quotes of a string becomes an identifier only if it
is a known one *and* stands where SQL wants a name; a value (``= 'Title'``, ``IN ('Title')``, ``VALUES ('Title')``) is
never touched. A word that is a known identifier but for separators (``Player_Name``) becomes that identifier.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from harnesslab_envs.dbbench.quoting.tokens import RESERVED, REST, Statement, tokens

Dialect: TypeAlias = Literal["sqlite", "mysql", "postgres", "ansi"]

QUOTES: dict[str, str] = {"sqlite": '"', "mysql": "`", "postgres": '"', "ansi": '"'}
"""The character around an identifier."""


class Quoter:
    """Quotes ``identifiers`` in any number of statements.

    ``loose`` also recognises them with other separators or none (``Player_Name``, ``playername``), where no
    second identifier reads the same.
    """

    def __init__(self, identifiers: Iterable[str], dialect: Dialect = "sqlite", loose: bool = True) -> None:
        self._dialect, self._mark = dialect, QUOTES[dialect]
        names = list(dict.fromkeys(name for name in identifiers if name.strip()))
        self._known = {_flat(name): name for name in names}
        self._loose = _folded(names) if loose else {}
        # Longest first, so that "Runners Up Score" wins over "Runners Up".
        spelled = sorted((name for name in names if not re.fullmatch(r"\w+", name)), key=len, reverse=True)
        known = rf"(?P<known>{'|'.join(map(_spelling, spelled))})|" if spelled else ""
        self._scan = re.compile(known + REST, re.IGNORECASE | re.DOTALL | re.VERBOSE)

    def __call__(self, sql: str) -> str:
        """``sql`` with known identifiers quoted; unchanged where there is nothing to do."""
        everything = tokens(sql, self._scan, self._name_of)
        statement = Statement([token for token in everything if token.kind not in ("space", "comment")])
        wanted = {id(t) for i, t in enumerate(statement.tokens) if t.name and self._wants(statement, i)}
        return "".join(self.quoted(token.name) if id(token) in wanted else token.text for token in everything)

    def quoted(self, name: str) -> str:
        """``name`` in the dialect's quotes."""
        return self._mark + name.replace(self._mark, self._mark * 2) + self._mark

    def _name_of(self, text: str) -> str:
        """The identifier that a text is or stands for; empty for none."""
        return self._known.get(_flat(text)) or self._loose.get(_fold(text), "")

    def _wants(self, statement: Statement, index: int) -> bool:
        """Whether the token must be written as a quoted identifier."""
        token = statement.tokens[index]
        same = token.inner.lower() == token.name.lower()
        if token.kind == "text" or (token.kind == "double" and self._dialect == "mysql"):
            return statement.wants_name(index)
        if token.kind == "double":
            return not same and statement.wants_name(index)
        if token.kind == "tick":
            foreign = self._dialect in ("postgres", "ansi") or (self._dialect == "mysql" and token.text[0] == "[")
            return foreign or not same
        if not any(char.isalpha() for char in token.name):
            return statement.wants_number(index)
        if token.kind == "known":
            return True
        if token.low in RESERVED:
            return statement.wants_reserved(index)
        if statement.before(index) == "as" or token.low in statement.aliases:
            return False
        if statement.after(index) == "(" and statement.before(index) not in ("into", "table"):
            return False
        return not same or self._needs_quotes(token.name)

    def _needs_quotes(self, name: str) -> bool:
        """Whether a name of letters, digits and underscores cannot stand bare."""
        return name[0].isdigit() or (self._dialect in ("postgres", "ansi") and name != name.lower())


def _flat(name: str) -> str:
    return " ".join(name.split()).lower()


def _fold(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def _folded(names: Sequence[str]) -> dict[str, str]:
    """Letters and digits of a name to the name; those that two names share are left out, and single letters."""
    found: dict[str, set[str]] = {}
    for name in names:
        found.setdefault(_fold(name), set()).add(name)
    return {fold: next(iter(same)) for fold, same in found.items() if len(same) == 1 and len(fold) > 1}


def _spelling(name: str) -> str:
    """A pattern for a name that stands bare: any spaces between its words, no letter or digit around it."""
    body = r"\s+".join(re.escape(part) for part in name.split())
    return (r"(?<!\w)" if re.match(r"\w", name) else "") + body + (r"(?!\w)" if re.search(r"\w$", name) else "")
