"""Candidates, their states, verdicts and acts: what may be done, what git will do, and doing it."""

from harnesslab.ledger.acts import Done, LastDecision, Ledger
from harnesslab.ledger.learning import learning_text, write_learning
from harnesslab.ledger.plans import Plan
from harnesslab.ledger.rules import reason_given, refusal
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
from harnesslab.ledger.words import ACTS, CHOICE, DECIDED, OPEN, OUTCOME, Act, Choice
from harnesslab.store import Candidate, State

__all__ = [
    "ACTS",
    "CHOICE",
    "DECIDED",
    "OPEN",
    "OUTCOME",
    "Act",
    "Candidate",
    "Choice",
    "Decider",
    "Done",
    "Flip",
    "LastDecision",
    "Ledger",
    "Plan",
    "State",
    "Verdict",
    "learning_text",
    "now",
    "persons_verdict",
    "read_verdict",
    "reason_given",
    "refusal",
    "solved_counts",
    "who_decided",
    "whoami",
    "write_learning",
]
