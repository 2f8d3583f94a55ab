"""Repositories trained with harness-training: the same questions, answered read-only."""

from __future__ import annotations

from harnesslab.server.answers import Counts, RefRow
from harnesslab.server.core.labs import Lab
from harnesslab.server.core.rows import foreign_row
from harnesslab.server.queries import RefsQuery
from harnesslab.store import list_foreign

MAX_REFS = 100_000


def rows(lab: Lab) -> list[RefRow]:
    """Every candidate of a foreign repository."""
    return [foreign_row(each) for each in list_foreign(lab.folder, limit=MAX_REFS)[1]]


def page(lab: Lab, query: RefsQuery) -> tuple[int, list[RefRow]]:
    """One page of them. They carry no verdict, so a filter by layer, reason or decider leaves nothing."""
    if query.layer or query.reason or query.decider:
        return 0, []
    text = query.text.casefold()
    found = [
        row
        for row in rows(lab)
        if row.state == query.state and (not text or text in f"{row.ref} {row.about} {row.who}".casefold())
    ]
    found.sort(key=lambda row: (row.proposed, row.ref), reverse=query.order == "desc")
    return len(found), found[query.offset : query.offset + query.limit]


def counts(lab: Lab) -> Counts:
    """How many there are in each state."""
    states = [row.state for row in rows(lab)]
    return Counts(pending=0, rejected=states.count("rejected"), promoted=states.count("promoted"))
