"""``action/rescue``: find the action in a reply that missed the form."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from harnesslab.harness.actions import is_admissible
from harnesslab.harness.context import Action, Context, Proposal
from harnesslab.harness.fitting import find_tool, fit
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.protocol import AMBIGUOUS, expected_form
from harnesslab.harness.regexes import Regex
from harnesslab.harness.repair import Ambiguous, clean, find_text_action
from harnesslab.harness.toolrepair import find_call
from harnesslab.harness.toolschema import name_of


class RescueParams(Params):
    """Parameters of ``rescue``."""

    max_chars: int = Field(default=120, ge=1, description="longest text accepted as an action that is not listed")
    tidy: bool = Field(default=True, description="also tidy a readable action: markup around it, argument types")
    bare: Regex | None = Field(default=None, description="text that is the argument of `bare_tool` where it matches")
    bare_tool: str | None = Field(default=None, description="a tool with one required argument")


@register
class Rescue(Kind[RescueParams]):
    """Read an action that missed the form: another label, a code block, a line of its own, or a tool call as text.

    `docs/reply-formats.md` lists the published formats that it reads. Prose is never an action, whatever it mentions, and
    a reply that means several different actions is executed as none of them. JSON with missing or wrong quotes, commas and
    brackets is mended if no letter of it is lost. Where the environment lists its actions, a listed one beats all other
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
            return None if action is None else replace(proposal, action=action)
        if proposal.cause == "ambiguous":
            return None
        try:
            action = self._found(context, proposal)
        except Ambiguous:
            problem = f"{AMBIGUOUS} {expected_form(context.protocol, context.tools)}"
            return replace(proposal, problem=problem, cause="ambiguous")
        return None if action is None else replace(proposal, action=action, problem="", cause="")

    def _found(self, context: Context, proposal: Proposal) -> Action | None:
        if context.tools:
            return find_call(proposal, context.tools) or self._bare(context, proposal)
        return find_text_action(proposal.raw, context.admissible, self.params.max_chars, proposal.cut)

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
        if tool is None or self.params.bare is None:
            return None
        found = [match for match in self.params.bare.finditer(proposal.raw) if match.group().strip()]
        if len({match.group().strip() for match in found}) > 1:
            raise Ambiguous
        if not found or (proposal.cut and found[-1].end() == len(proposal.raw)):
            return None
        arguments = fit(found[0].group().strip(), tool)
        return None if arguments is None else {"name": name_of(tool), "arguments": arguments}
