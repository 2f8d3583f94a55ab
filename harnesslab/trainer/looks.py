"""Looks at the gate: which one a measurement is, over all trainings of a lab, and which draws it plays.

On a sampled backbone no draw that took part in a promotion decides again: the score of a promoted candidate is lucky more often than not, and as the baseline's it
would turn down better ones. So after each promotion the baseline is played afresh, beside the next candidate.

A criterion that has to know its look has a method ``at(look, promoted, passes)``, which gives the one to judge with. The count is read from the
verdicts in git, so that it survives kernels, and a second notebook does not start over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harnesslab.lab import Lab
from harnesslab.ledger import read_verdict
from harnesslab.store import Candidate
from harnesslab.trainer.criterion import Criterion

ALL = 100_000
"""Candidates that are looked through: more than any lab will see."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look: the criterion for it, the first repeat that it plays, those of earlier looks at the same candidate, and what to note."""

    criterion: Criterion
    first: int = 0
    earlier: tuple[int, ...] = ()
    note: Mapping[str, Any] = field(default_factory=dict)


def look_at(lab: Lab, candidate: Candidate, criterion: Criterion, *, greedy: bool) -> Look:
    """The next look, at a candidate. ``greedy``: playing again gives the same, so that nothing is played again.

    A look that was decided already is the same look, not another one.
    """
    at: Any = getattr(criterion, "at", None)
    if at is None:
        first = 0 if greedy else _drawn(lab, candidate)
        return Look(criterion, first, note={"draws": first} if first else {})
    repeats = _numbers(candidate.verdict, "repeats")
    rows = lab.repo.candidates(limit=ALL).rows
    looks = [number for row in rows for number in looks_of(row)]
    verdict = read_verdict(candidate.verdict)
    undecided = verdict is not None and verdict.decision == "undecided"
    own = looks_of(candidate)
    if own and (greedy or not undecided):
        look, passes, earlier, first = own[-1], len(own), repeats[:-1], repeats[-1]
        own = own[:-1]
    else:
        look, passes, earlier = max(looks, default=0) + 1, len(own) + 1, repeats
        first = 0 if greedy else _fresh(look)
    promoted = sum(row.state == "promoted" and 0 < min(looks_of(row), default=0) < look for row in rows)
    return Look(
        at(look, promoted, passes),
        first,
        tuple(earlier),
        {"looks": [*own, look], "repeats": [*earlier, first]},
    )


def coming(lab: Lab, criterion: Criterion, count: int) -> list[Criterion]:
    """The criterion as it judges the next ``count`` new candidates of the lab, if none of them is promoted."""
    at: Any = getattr(criterion, "at", None)
    if at is None:
        return [criterion] * count
    rows = lab.repo.candidates(limit=ALL).rows
    first = max((look for row in rows for look in looks_of(row)), default=0) + 1
    promoted = sum(row.state == "promoted" and bool(looks_of(row)) for row in rows)
    return [at(look, promoted, 1) for look in range(first, first + count)]


def looks_of(candidate: Candidate) -> list[int]:
    """The numbers of the looks at a candidate that are on record."""
    return _numbers(candidate.verdict, "looks")


def _drawn(lab: Lab, candidate: Candidate) -> int:
    """The first repeat of a plain comparison: that of its own verdict, else one for each promotion of the lab."""
    verdict = read_verdict(candidate.verdict)
    drawn = verdict.statistics.get("draws", 0) if verdict is not None and verdict.counts is not None else None
    return drawn if type(drawn) is int and drawn >= 0 else _fresh(promotions(lab))


def promotions(lab: Lab) -> int:
    """How many candidates of the lab are promoted."""
    return len(lab.repo.candidates(state="promoted", limit=ALL).rows)


def _fresh(look: int) -> int:
    """The first repeat of a look that draws anew: its own thousand, since a look may have many repeats."""
    return 1000 * look


def _numbers(verdict: Mapping[str, Any] | None, key: str) -> list[int]:
    found = ((verdict or {}).get("statistics") or {}).get(key)
    return [number for number in found if type(number) is int] if isinstance(found, list) else []
