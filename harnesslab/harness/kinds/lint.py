"""``regulation/lint``: a remark on an action that is executed all the same."""

from __future__ import annotations

from pydantic import Field

from harnesslab.harness.actions import shown
from harnesslab.harness.context import Context, Decision, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex


class LintParams(Params):
    """Parameters of ``lint``."""

    pattern: Regex = Field(description="searched in the action; a tool call reads `name {arguments as JSON}`")
    unless: Regex | None = Field(default=None, description="actions in which this is found are left alone")
    message: str = Field(min_length=1, max_length=2000, description="shown below the result of the action")
    limit: int = Field(default=5, ge=1, description="maximum number of times per episode")


@register
class Lint(Kind[LintParams]):
    """An action that matches is executed, and its result comes with a remark. Nothing is withheld and no step is lost."""

    kind = "lint"
    layers = ("regulation",)
    Params = LintParams
    example = """\
kind: lint
about: LIMIT without ORDER BY gives any rows
params:
  pattern: '(?i)\\blimit\\s+\\d'
  unless: '(?i)order\\s+by'
  message: 'LIMIT without ORDER BY: these are not the first rows of anything.'
"""

    def regulate(self, context: Context, proposal: Proposal) -> Decision | None:
        """Add the remark."""
        params = self.params
        if proposal.action is None or proposal.withheld or context.count_fired(self.name) >= params.limit:
            return None
        text = shown(proposal.action)
        if not params.pattern.search(text) or (params.unless is not None and params.unless.search(text)):
            return None
        return Decision(note=params.message)
