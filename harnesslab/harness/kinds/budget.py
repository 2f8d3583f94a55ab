"""``regulation/budget``: say when the steps run out."""

from __future__ import annotations

from pydantic import Field

from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register


class BudgetParams(Params):
    """Parameters of ``budget``."""

    left: int = Field(default=3, ge=1, description="warn this many steps before the end")
    note: str = Field(
        default="Only {left} step(s) are left. Finish the task now.",
        min_length=1,
        max_length=2000,
        description="the warning; `{left}` is the number of steps that are left, including this one",
    )


@register
class Budget(Kind[BudgetParams]):
    """A warning beside the observation in the last steps of the budget."""

    kind = "budget"
    layers = ("regulation",)
    Params = BudgetParams
    example = """\
kind: budget
about: runs end without an answer
params:
  left: 2
  note: 'Steps left: {left}. Commit your best answer now.'
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Append the warning to the last user message."""
        if context.steps_left > self.params.left:
            return None
        return draft.add(after=self.params.note.replace("{left}", str(context.steps_left)))
