"""``contract/prompt``: a text for the model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register, tool_names
from harnesslab.harness.regexes import Regex


class PromptParams(Params):
    """Parameters of ``prompt``."""

    text: str = Field(min_length=1, max_length=20_000, description="the text")
    on: str = Field(
        default="system",
        pattern=r"^(system|observation|tool:\S+)$",
        description="`system`: the system message; `tool:NAME`: the same, where that tool is offered; "
        "`observation`: beside the present observation",
    )
    match: Regex | None = Field(default=None, description="with `on: observation`: only where the observation matches")
    place: Literal["before", "after"] = Field(default="after", description="with `on: observation`: before or after it")

    @model_validator(mode="after")
    def _complete(self) -> PromptParams:
        if self.match is not None and self.on != "observation":
            raise PydanticCustomError(
                "value_error", "match looks at an observation: set on: observation, or leave it out"
            )
        return self


@register
class Prompt(Kind[PromptParams]):
    """A paragraph for the system message, about one tool, or beside the observations that match a pattern."""

    kind = "prompt"
    layers = ("contract",)
    Params = PromptParams
    example = """\
kind: prompt
about: the model does not know that the table must be named
params:
  text: Put identifiers that hold spaces in double quotes.
  on: tool:execute_sql
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Add the paragraph where it belongs."""
        params = self.params
        if params.on == "system":
            return draft.add(system=params.text)
        if params.on == "observation":
            if params.match is not None and not params.match.search(context.observation):
                return None
            return draft.add(before=params.text) if params.place == "before" else draft.add(after=params.text)
        tool = params.on.removeprefix("tool:")
        return draft.add(system=f"About {tool}: {params.text}") if tool in tool_names(context.tools) else None
