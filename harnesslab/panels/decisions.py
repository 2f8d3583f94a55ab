"""What git knows of a proposal: looked up by its content, so that a panel that is made again shows what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harnesslab.lab import Lab
from harnesslab.ledger import OPEN, Act, Candidate, Verdict, read_verdict, who_decided
from harnesslab.trainer.proposal import Proposal

LOOK_BACK = 500
"""Candidates that are looked at, the latest ones: as many as estimators are told of."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The latest candidate with a proposal's content, if there is one.

    ``here``: it stands on the present baseline, or is part of it. ``variant``: nothing is known of this content, but another
    version of the same intervention was judged on the present baseline.
    """

    candidate: Candidate | None = None
    here: bool = True
    variant: Candidate | None = None
    acts: tuple[Act, ...] = ("promote", "reject")
    """What can be done with it now; a proposal without a candidate on this baseline becomes one first."""

    @property
    def decided(self) -> bool:
        """Whether a decision stands in the way of another one."""
        return self.candidate is not None and self.here and self.candidate.state not in OPEN

    @property
    def measured(self) -> Verdict | None:
        """The verdict on record, if it is one of the present baseline."""
        return read_verdict(self.candidate.verdict) if self.candidate is not None and self.here else None

    @property
    def word(self) -> str:
        """The state in a word or two."""
        if self.candidate is None:
            return "proposed"
        return self.candidate.state + ("" if self.here else " on an earlier baseline")

    @property
    def sentence(self) -> str:
        """Who decided what, and why; empty while nothing was decided. Untrusted text inside."""
        decider = who_decided(self.candidate.verdict) if self.candidate is not None else None
        if self.candidate is None or decider is None:
            return f"Another version of it was {self.variant.state}." if self.variant is not None else ""
        return f"{self.word.capitalize()} by {decider}: {self.candidate.reason or 'no reason was given'}"


class Record:
    """The latest candidates of a lab, read once, for questions about several proposals."""

    def __init__(self, lab: Lab):
        self._ledger, self._baseline = lab.ledger, lab.repo.baseline()
        self._files = lab.harness(self._baseline).files
        self._rows = lab.repo.candidates(limit=LOOK_BACK).rows

    def of(self, proposal: Proposal) -> Standing:
        """What is known of a proposal, on this baseline and on those before."""
        same = [row for row in self._rows if row.meta.get("content") == proposal.content]
        held = self._holds(proposal)
        here = [row for row in same if row.parent == self._baseline or (row.state == "promoted" and held)]
        if here:
            return Standing(here[0], acts=tuple(self._ledger.possible(here[0])))
        if same:
            return Standing(same[0], here=False)
        return Standing(variant=next(filter(self._is_variant(proposal.name), self._rows), None))

    def _is_variant(self, name: str) -> Callable[[Candidate], bool]:
        return lambda row: (
            row.meta.get("name") == name and row.state not in OPEN and self._baseline in (row.parent, row.commit)
        )

    def _holds(self, proposal: Proposal) -> bool:
        """Whether the present baseline has the change already."""
        return all(
            self._files.get(path) == (None if text is None else text.encode())
            for path, text in proposal.changes.items()
        )
