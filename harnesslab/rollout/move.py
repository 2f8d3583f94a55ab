"""What one step came to, for the record and for whoever executes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.harness.context import Action, Context, Decision, Proposal
from harnesslab.harness.pipeline import Prepared
from harnesslab.llm.types import Completion
from harnesslab.rollout.foreign import Outcome

REPLY = "reply"
"""The name under which an environment gets the whole reply for somebody else's agent."""


@dataclass(slots=True)
class Move:
    """What one step came to.

    ``executes``: ``action`` goes to the system outside, and its answer to :meth:`AgentRun.settle`. Otherwise the step is
    over: ``result`` is what the agent sees next, and ``invalid`` says whether it was spent without an action (a tool of the
    harness's own is one). ``stops``: a regulation ended the run. ``choices`` counts the actions that the harness left to
    the model (0: not constrained). ``fired`` names the interventions that took part. ``seen`` is the observation as it
    arrived, which ``context`` may hold in the harness's words. ``again`` are the texts with which the model was asked again,
    each with the number of replies before it.
    """

    context: Context
    ready: Prepared
    replies: Sequence[Completion]
    proposal: Proposal
    decision: Decision
    action: Action | None
    executes: bool
    stops: bool
    result: str
    fired: tuple[str, ...]
    invalid: bool = False
    seen: str = ""
    again: tuple[tuple[int, str], ...] = ()
    outcome: Outcome | None = None
    """The reply for somebody else's agent; None where the harness owns the prompt."""

    @property
    def sent(self) -> Action | None:
        """What goes to the system outside: the action, or the whole reply for somebody else's agent."""
        return self.action if self.outcome is None else {"name": REPLY, "arguments": self.outcome.message}

    @property
    def choices(self) -> int:
        """How many actions the harness left to the model; 0 where it was not constrained."""
        return len(self.ready.choices) if self.ready.choices else 0
