"""``action/ask_again``: a bad reply is corrected in the same step."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from harnesslab.harness.actions import is_admissible, shown
from harnesslab.harness.context import MAX_AGAIN, Context, Proposal
from harnesslab.harness.fitting import find_tool, fit
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex
from harnesslab.harness.toolschema import required


class AskAgainParams(Params):
    """Parameters of ``ask_again``: at least one of the conditions."""

    unread: bool = Field(default=True, description="when no action can be read from the reply")
    impossible: bool = Field(
        default=False,
        description="when the environment does not list the action, or a tool's required arguments are missing",
    )
    pattern: Regex | None = Field(
        default=None, description="when the action matches; a tool call reads `name {arguments as JSON}`"
    )
    message: str = Field(
        default="", max_length=2000, description="shown below the reply; empty: what is wrong with its form"
    )
    times: int = Field(default=1, ge=1, le=MAX_AGAIN, description="maximum number of times per step")

    @model_validator(mode="after")
    def _complete(self) -> AskAgainParams:
        if not (self.unread or self.impossible or self.pattern):
            raise PydanticCustomError("value_error", "set unread, impossible or pattern")
        if (self.impossible or self.pattern) and not self.message:
            raise PydanticCustomError("value_error", "set message: only an unread reply has one of its own")
        return self


@register
class AskAgain(Kind[AskAgainParams]):
    """The model is asked again in the same step, with its reply and a message: a call more, and no step less.

    It comes after all other repairs. After `times`, what the reply says counts.
    """

    kind = "ask_again"
    layers = ("action",)
    stage = 95
    Params = AskAgainParams
    example = """\
kind: ask_again
about: one reply in five holds no call
params:
  times: 2
"""

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Ask again where a condition holds."""
        if proposal.withheld or context.asked >= self.params.times or not self._wrong(context, proposal):
            return None
        return replace(proposal, again=self.params.message or proposal.problem)

    def _wrong(self, context: Context, proposal: Proposal) -> bool:
        params, action = self.params, proposal.action
        if action is None:
            return params.unread
        if params.pattern is not None and params.pattern.search(shown(action)):
            return True
        if not params.impossible:
            return False
        if isinstance(action, str):
            return not is_admissible(context, action)
        tool = find_tool(action.get("name"), context.tools or ())
        if tool is None:
            return bool(context.tools)
        arguments = fit(action.get("arguments"), tool)
        return arguments is None or not set(required(tool)) <= set(arguments)
