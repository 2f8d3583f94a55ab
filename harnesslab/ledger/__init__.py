"""Candidates, their states, verdicts and acts: what may be done, what git will do, and doing it."""

from harnesslab.ledger.acts import Done, LastDecision, Ledger
from harnesslab.ledger.learning import learning_text, write_learning
from harnesslab.ledger.plans import Plan
from harnesslab.ledger.rules import refusal
from harnesslab.ledger.verdict import (
    Decider,
    Flip,
    Verdict,
    now,
    persons_verdict,
    read_verdict,
    solved_counts,
    who_decided,
)
from harnesslab.ledger.who import whoami
from harnesslab.ledger.words import ACTS, DECIDED, OPEN, OUTCOME, Act, Choice

__all__ = [
    "ACTS",
    "DECIDED",
    "OPEN",
    "OUTCOME",
    "Act",
    "Choice",
    "Decider",
    "Done",
    "Flip",
    "LastDecision",
    "Ledger",
    "Plan",
    "Verdict",
    "learning_text",
    "now",
    "persons_verdict",
    "read_verdict",
    "refusal",
    "solved_counts",
    "who_decided",
    "whoami",
    "write_learning",
]
