"""``contract/admissible``: list what can be done now."""

from __future__ import annotations

from pydantic import Field

from harnesslab.harness.actions import untried
from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register


class AdmissibleParams(Params):
    """Parameters of ``admissible``."""

    title: str = Field(default="Possible actions:", max_length=500, description="the line above the list")
    max: int = Field(
        default=50, ge=1, le=1000, description="maximum number of actions to list; the rest is only counted"
    )
    inline: bool = Field(default=False, description="one line with commas instead of one action per line")
    hide_tried: bool = Field(default=False, description="leave out actions already tried in this situation")


@register
class Admissible(Kind[AdmissibleParams]):
    """The admissible actions after the observation. Silent where the environment lists none."""

    kind = "admissible"
    layers = ("contract",)
    Params = AdmissibleParams
    example = """\
kind: admissible
about: the model invents actions
params: {max: 30, hide_tried: true}
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Append the list to the last user message."""
        actions = context.admissible
        if not actions:
            return None
        if self.params.hide_tried:
            actions = untried(context, actions) or actions
        listed = actions[: self.params.max]
        rest = f"(and {len(actions) - len(listed)} more)" if len(actions) > len(listed) else ""
        if self.params.inline:
            return draft.add(after=" ".join(filter(None, (self.params.title, ", ".join(listed), rest))))
        lines = [self.params.title, *(f"- {action}" for action in listed), rest]
        return draft.add(after="\n".join(line for line in lines if line))
