"""``action/rescue``: find the action in a reply that missed the form."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from harnesslab.harness.actions import is_admissible
from harnesslab.harness.context import Action, Context, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.protocol import function
from harnesslab.harness.regexes import Regex
from harnesslab.harness.repair import clean, find_text_action
from harnesslab.harness.toolrepair import find_call, find_tool, fit


class RescueParams(Params):
    """Parameters of ``rescue``."""

    max_chars: int = Field(default=120, ge=1, description="longest text that is taken for an action nobody listed")
    tidy: bool = Field(default=True, description="also tidy a readable action: markup around it, argument types")
    bare: Regex | None = Field(default=None, description="text that is the argument of `bare_tool` where it matches")
    bare_tool: str | None = Field(default=None, description="a tool with one required argument")


@register
class Rescue(Kind[RescueParams]):
    """The action in free text, code fences, broken JSON, without its prefix, or a tool call written as text.

    Broken JSON is mended by json-repair. Where the environment lists its actions, a listed one beats all other
    readings, and an unlisted one must at least begin with a known verb.
    """

    kind = "rescue"
    layers = ("action",)
    stage = 10
    Params = RescueParams
    example = """\
kind: rescue
about: the model answers with the statement alone, without 'Action:'
params:
  bare: '(?is)^\\s*(select|insert|update|with)\\b.+'
  bare_tool: execute_sql
"""

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Read an action where there is none; tidy one where there is."""
        if proposal.withheld:
            return None
        if proposal.action is not None:
            action = self._tidied(context, proposal.action) if self.params.tidy else None
        elif context.tools:
            action = find_call(proposal, context.tools) or self._bare(context, proposal)
        else:
            action = find_text_action(proposal.raw, context.admissible, self.params.max_chars)
        return None if action is None else replace(proposal, action=action, problem="")

    def _tidied(self, context: Context, action: Action) -> Action | None:
        if isinstance(action, str):
            tidy = clean(action)
            wanted = tidy and tidy != action and not is_admissible(context, action) and is_admissible(context, tidy)
            return tidy if wanted else None
        tool = find_tool(action.get("name"), context.tools or ())
        arguments = fit(action.get("arguments"), tool) if tool is not None else None
        return {**action, "arguments": arguments} if arguments not in (None, action.get("arguments")) else None

    def _bare(self, context: Context, proposal: Proposal) -> Action | None:
        tool = find_tool(self.params.bare_tool, context.tools or ())
        match = self.params.bare.search(proposal.raw) if self.params.bare is not None else None
        if tool is None or match is None:
            return None
        arguments = fit(match.group().strip(), tool)
        return None if arguments is None else {"name": function(tool)["name"], "arguments": arguments}
