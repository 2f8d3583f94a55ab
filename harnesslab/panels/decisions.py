"""What git knows of a proposal: looked up by its content, so that a panel that is made again shows what was decided."""

from __future__ import annotations

from dataclasses import dataclass

from harnesslab.lab import Lab
from harnesslab.store import Candidate
from harnesslab.trainer.proposal import Proposal

LOOK_BACK = 50
"""Candidates with one content that are looked at."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The latest candidate with a proposal's content, if there is one.

    ``here``: it stands on the present baseline, or is part of it. ``variant``: nothing is known of this content, but another
    version of the same intervention was judged on the present baseline.
    """

    candidate: Candidate | None = None
    here: bool = True
    variant: Candidate | None = None

    @property
    def decided(self) -> bool:
        """Whether a decision stands in the way of another one."""
        return self.candidate is not None and self.here and self.candidate.state in ("promoted", "rejected")

    @property
    def word(self) -> str:
        """The state in a word or two."""
        if self.candidate is None:
            return "open"
        words = {"promoted": "accepted", "rejected": "rejected", "undecided": "undecided", "pending": "open"}
        return words[self.candidate.state] + ("" if self.here else " on an earlier baseline")

    @property
    def sentence(self) -> str:
        """Who decided what, and why; empty while nothing was decided. Untrusted text inside."""
        if self.candidate is None or self.candidate.state == "pending":
            return f"Another version of it was {self.variant.state}." if self.variant is not None else ""
        verdict = self.candidate.verdict or {}
        person = verdict.get("decided_by") == "person"
        who = verdict.get("who", "a person") if person else verdict.get("criterion", "the criterion")
        against = ", against the criterion" if verdict.get("override") else ""
        return f"{self.word.capitalize()} by {who}{against}: {self.candidate.reason or 'no reason was given'}"


def standing(lab: Lab, proposal: Proposal) -> Standing:
    """Look a proposal up in git, on this baseline and on those before."""
    baseline = lab.repo.baseline()
    rows = lab.repo.candidates(text=proposal.content, limit=LOOK_BACK).rows
    same = [row for row in rows if row.meta.get("content") == proposal.content]
    on_it = [row for row in same if row.parent == baseline or (row.state == "promoted" and _held(lab, proposal))]
    if on_it:
        return Standing(on_it[0])
    if same:
        return Standing(same[0], here=False)
    for row in lab.repo.candidates(state=("promoted", "rejected"), text=proposal.name, limit=LOOK_BACK).rows:
        if row.meta.get("name") == proposal.name and baseline in (row.parent, row.commit):
            return Standing(variant=row)
    return Standing()


def _held(lab: Lab, proposal: Proposal) -> bool:
    """Whether the present baseline holds the change already."""
    files = lab.harness().files
    return all(files.get(path) == (None if text is None else text.encode()) for path, text in proposal.changes.items())
