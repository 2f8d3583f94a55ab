"""``action/rewrite``: a known mistake, corrected by pattern."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from harnesslab.harness.actions import edit_argument
from harnesslab.harness.context import Context, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex


class RewriteParams(Params):
    """Parameters of ``rewrite``."""

    pattern: Regex = Field(description="every match is replaced")
    replacement: str = Field(max_length=2000, description="the replacement; `\\1` and `\\g<name>` are groups")
    argument: str | None = Field(
        default=None, description="the tool argument to work on; by default all text arguments"
    )
    only_inadmissible: bool = Field(default=False, description="leave alone what the environment lists as possible")

    @field_validator("replacement")
    @classmethod
    def _groups_exist(cls, value: str, info: ValidationInfo) -> str:
        pattern = info.data.get("pattern")
        return pattern.fitting(value) if isinstance(pattern, Regex) else value


@register
class Rewrite(Kind[RewriteParams]):
    """Pattern to replacement, on a text action or on the text arguments of a tool call."""

    kind = "rewrite"
    layers = ("action",)
    stage = 20
    Params = RewriteParams
    example = """\
kind: rewrite
about: the world says "take", the model says "grab" or "pick up"
params:
  pattern: '(?i)^(grab|pick up)\\b'
  replacement: take
"""

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Replace every match."""
        params, action = self.params, proposal.action
        if action is None or proposal.withheld:
            return None
        if params.only_inadmissible and context.admissible and action in context.admissible:
            return None
        edited = edit_argument(action, params.argument, lambda text: params.pattern.sub(params.replacement, text))
        return None if edited is None or not edited else replace(proposal, action=edited)
