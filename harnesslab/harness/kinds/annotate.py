"""``contract/annotate``: a hint that stays with an observation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from harnesslab.harness.context import Context
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex


class AnnotateParams(Params):
    """Parameters of ``annotate``."""

    match: Regex | None = Field(default=None, description="only observations in which this is found; by default all")
    text: str = Field(
        min_length=1, max_length=5000, description="the hint; with `match`, `\\1` and `\\g<name>` are its groups"
    )
    place: Literal["before", "after", "instead"] = Field(
        default="after", description="before or after the observation, or in place of what matches"
    )
    limit: int = Field(default=1000, ge=1, description="maximum number of times per episode")

    @field_validator("text")
    @classmethod
    def _groups_exist(cls, value: str, info: ValidationInfo) -> str:
        pattern = info.data.get("match")
        return pattern.fitting(value) if isinstance(pattern, Regex) else value

    @field_validator("place")
    @classmethod
    def _matches(cls, value: str, info: ValidationInfo) -> str:
        if value == "instead" and info.data.get("match") is None:
            raise PydanticCustomError("value_error", "instead replaces what matches: set match")
        return value


@register
class Annotate(Kind[AnnotateParams]):
    """A hint is added to an observation when it arrives and stays with it in the history, or replaces a part of it.

    A `prompt` on observations shows its text in one request; this one the agent has seen for good.
    """

    kind = "annotate"
    layers = ("contract",)
    Params = AnnotateParams
    example = """\
kind: annotate
about: an empty result is taken for an answer
params:
  match: '^\\[\\]$'
  text: 'No row matches. Compare the values in the condition with those in the table: SELECT DISTINCT shows them.'
"""

    def observe(self, context: Context, observation: str) -> str | None:
        """Add the hint, or put it in place of what matches."""
        params = self.params
        if context.count_fired(self.name) >= params.limit:
            return None
        if params.match is None:
            hint = params.text
        elif (found := params.match.search(observation)) is None:
            return None
        elif params.place == "instead":
            return params.match.sub(params.text, observation)
        else:
            hint = str(found.expand(params.text))
        return f"{hint}\n{observation}" if params.place == "before" else f"{observation}\n{hint}"
