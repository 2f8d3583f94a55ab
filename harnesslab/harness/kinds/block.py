"""``action/block``: some actions are not executed."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from harnesslab.harness.actions import shown
from harnesslab.harness.context import Context, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex


class BlockParams(Params):
    """Parameters of ``block``."""

    pattern: Regex = Field(description="searched in the action; a tool call reads `name {arguments as JSON}`")
    message: str = Field(min_length=1, max_length=2000, description="shown to the agent instead of an observation")
    limit: int = Field(
        default=3, ge=1, description="maximum number of times per episode, so that it can never lock an agent in"
    )


@register
class Block(Kind[BlockParams]):
    """An action that matches is withheld with a message. The step is spent; the environment is not touched."""

    kind = "block"
    layers = ("action",)
    stage = 90
    Params = BlockParams
    example = """\
kind: block
about: DROP and TRUNCATE destroy the table that the task is about
params:
  pattern: '(?i)\\b(drop|truncate)\\s+table\\b'
  message: Tables must not be dropped. Change single rows with UPDATE or INSERT.
"""

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Withhold the action."""
        if proposal.action is None or not self.params.pattern.search(shown(proposal.action)):
            return None
        if context.count_fired(self.name) >= self.params.limit:
            return None
        return replace(proposal, withheld=True, problem=self.params.message)
