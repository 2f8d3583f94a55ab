"""Plans and acts, as the browser asks for them; `harnesslab.ledger` knows what they do."""

from __future__ import annotations

from harnesslab.ledger import Act
from harnesslab.server.answers import Done, Expectation, Plan
from harnesslab.server.core.labs import Lab

LOCK_WAIT_S = 2.0
"""A person in front of a browser gets the owner's name sooner than a training run would."""


def plan(lab: Lab, action: Act, ref: str) -> Plan:
    """What git would do for an action on a ref, or why it is not allowed."""
    found = lab.ledger.plan(action, ref)
    return Plan(
        action=action,
        ref=found.ref,
        allowed=found.allowed,
        steps=list(found.steps),
        needs_why=found.needs_why,
        undo=found.undo,
        expect=Expectation(baseline=found.baseline, ref=found.commit),
    )


def act(lab: Lab, action: Act, ref: str, expect: Expectation, who: str, why: str) -> Done:
    """Do one action. `expect`: the commits of baseline and ref that the person has seen."""
    seen = (expect.baseline, expect.ref)
    done = lab.ledger.carry_out(action, ref, who, why, seen=seen, wait=LOCK_WAIT_S)
    return Done(message=done.message, ref=done.ref, undo=done.undo)
