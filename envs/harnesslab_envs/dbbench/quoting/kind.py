"""``action/quote``: known identifiers in SQL get the quotes that they need."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from pydantic import Field

from harnesslab.harness.actions import edit_argument
from harnesslab.harness.context import Context, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex
from harnesslab_envs.dbbench.quoting.quoter import Dialect, Quoter

MAX_IDENTIFIERS = 500
MAX_NAME = 100
MAX_SQL = 20_000

_TABLE = re.compile(
    r"(?im)\btable(?:'s name)?\s*(?:is|named|called|:)\s*[\"'`]?(.{1,100}?)[\"'`]?(?=,\s+(?:and|with)\b|[.;:(]?\s*$|\n)"
)
_COLUMNS = re.compile(r"(?im)\b(?:headers|columns|fields)\b[^:\n]{0,40}?(?:\bare\b|\bis\b|:)\s*([^\n]{1,4000}?)\.?\s*$")
_CREATE = re.compile(
    r"(?i)\bcreate\s+table\s+(?:if\s+not\s+exists\s+)?(\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|\w+)\s*\(([^;]{1,8000})"
)
_DEFINITION = re.compile(r"(?:^|,)\s*(\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|\w+)\s+\w+")
_TICKED = re.compile(r"`([^`\n]{1,100})`")


class QuoteParams(Params):
    """Parameters of ``quote``."""

    argument: str | None = Field(default=None, description="the tool argument with SQL; by default all text arguments")
    dialect: Dialect = Field(
        default="sqlite", description="`mysql` quotes with backticks, the others with double quotes"
    )
    identifiers: Regex | None = Field(
        default=None,
        description="finds identifiers in the instruction and the observations (first group); without it, phrases like "
        "'the name of this table is ...', 'the headers are a, b, c', CREATE TABLE statements and names in backticks",
    )
    separator: str = Field(
        default=",", max_length=5, description="splits what `identifiers` finds; empty: do not split"
    )
    loose: bool = Field(default=True, description="also recognise `Player_Name` and `playername` for `Player Name`")
    results: int = Field(default=3, ge=0, le=50, description="number of past observations to search as well")


@register
class Quote(Kind[QuoteParams]):
    """Identifiers that the agent was told of, with spaces, punctuation or reserved words, are quoted in its SQL.

    Where they stand bare, where they stand in the quotes of a string, and where separators differ. String literals
    that are values are not touched.
    """

    kind = "quote"
    layers = ("action",)
    stage = 30
    Params = QuoteParams
    example = """\
kind: quote
about: column names with spaces are written without quotes
when: {tool: execute_sql}
params: {argument: query, dialect: sqlite}
"""

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Quote in a text action or in the arguments of a tool call."""
        if proposal.action is None or proposal.withheld:
            return None
        past = context.history[-self.params.results :] if self.params.results else ()
        texts = (context.instruction, context.observation, *(turn.observation for turn in past))
        names = self._identifiers(texts)
        if not names:
            return None
        quoter = _quoter(names, self.params.dialect, self.params.loose)
        edited = edit_argument(proposal.action, self.params.argument, lambda s: quoter(s) if len(s) <= MAX_SQL else s)
        return None if edited is None else replace(proposal, action=edited)

    def _identifiers(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for text in texts:
            names = _default_names(text) if self.params.identifiers is None else self._own_names(text)
            for name in names:
                if 0 < len(name) <= MAX_NAME:
                    found[name] = None
        return tuple(found)[:MAX_IDENTIFIERS]

    def _own_names(self, text: str) -> list[str]:
        assert self.params.identifiers is not None
        return _split(self.params.identifiers.extract(text), self.params.separator)


@lru_cache(maxsize=64)
def _quoter(names: tuple[str, ...], dialect: Dialect, loose: bool) -> Quoter:
    return Quoter(names, dialect, loose)


@lru_cache(maxsize=256)
def _default_names(text: str) -> tuple[str, ...]:
    """Names of tables and columns in the usual phrases and statements."""
    text = text[:50_000]
    names = [match[1] for match in _TABLE.finditer(text)]
    names += _split([match[1] for match in _COLUMNS.finditer(text)], ",")
    for match in _CREATE.finditer(text):
        names += [match[1], *(column[1] for column in _DEFINITION.finditer(match[2]))]
    names += [match[1] for match in _TICKED.finditer(text)]
    return tuple(name for name in (_bare(name) for name in names) if name)


def _split(found: list[str], separator: str) -> list[str]:
    parts = [part for text in found for part in (text.split(separator) if separator else [text])]
    return [part.strip() for part in parts]


def _bare(name: str) -> str:
    """A name without the quotes around it."""
    name = name.strip()
    if len(name) > 2 and (name[0], name[-1]) in (('"', '"'), ("`", "`"), ("[", "]"), ("'", "'")):
        return name[1:-1].strip()
    return name
