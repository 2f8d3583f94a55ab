"""The columns of a candidate in the sidebar: a new one is added here, and nowhere else.

A column with `listed` is also shown in the list; the page of a candidate shows all of them, in this order. The sidebar
shows what it is sent: it knows no column by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harnesslab.ledger import Verdict
from harnesslab.server import answers
from harnesslab.server.core.text import clip, stamp
from harnesslab.store import Candidate


@dataclass(frozen=True)
class Column:
    """`text` makes the cell of a candidate and the verdict on record; an empty one is left out."""

    name: str
    text: Callable[[Candidate, Verdict | None], object]
    listed: bool = False


def _says(candidate: Candidate, verdict: Verdict | None) -> str:
    """What the criterion says of a candidate that nobody has decided on."""
    return verdict.decision if verdict is not None and candidate.state == "measured" else ""


COLUMNS: tuple[Column, ...] = (
    Column("verdict", _says, listed=True),
    Column("kind", lambda candidate, _: candidate.kind),
    Column("proposed_by", lambda candidate, _: candidate.estimator),
    Column("proposed", lambda candidate, _: stamp(candidate.created)),
)


def cells(candidate: Candidate, verdict: Verdict | None) -> list[answers.Column]:
    """The cells of one row. What a candidate says of itself is untrusted: it is bounded here and shown as text."""
    found = ((column, clip(column.text(candidate, verdict), 200)) for column in COLUMNS)
    return [answers.Column(name=column.name, value=text, listed=column.listed) for column, text in found if text]
