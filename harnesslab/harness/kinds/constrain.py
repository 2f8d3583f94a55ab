"""``action/constrain``: the model can only answer with what is possible."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex


class ConstrainParams(Params):
    """Parameters of ``constrain``."""

    exclude: Regex | None = Field(default=None, description="admissible actions that match are not offered")
    max: int = Field(
        default=500,
        ge=1,
        le=5000,
        description="with more choices than this it does nothing, because grammars become slow",
    )


@register
class Constrain(Kind[ConstrainParams]):
    """Structured output limited to the admissible actions.

    Fires only where the backbone enforces choices, the environment lists its admissible actions, and no tools are
    in play. Excluding everything leaves the list as it was.
    """

    kind = "constrain"
    layers = ("action",)
    constrained_only = True
    Params = ConstrainParams
    example = """\
kind: constrain
about: nothing but a possible action can be said
params: {exclude: '^(look|inventory)$'}
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Set the choices of the request."""
        if not context.admissible or context.tools or draft.choices is not None:
            return None
        choices = context.admissible
        exclude = self.params.exclude
        if exclude is not None:
            choices = tuple(choice for choice in choices if not exclude.search(choice)) or choices
        return replace(draft, choices=choices) if len(choices) <= self.params.max else None
