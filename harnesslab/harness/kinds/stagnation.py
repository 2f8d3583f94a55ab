"""``regulation/stagnation``: say when nothing new is seen any more."""

from __future__ import annotations

from pydantic import Field

from harnesslab.harness.actions import untried
from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register


class StagnationParams(Params):
    """Parameters of ``stagnation``."""

    steps: int = Field(
        default=4, ge=1, description="fires after this many observations in a row that were all seen before"
    )
    note: str = Field(
        default="Nothing new has happened for some steps. Change your approach.",
        min_length=1,
        max_length=2000,
        description="shown next to the observation",
    )
    suggest: int = Field(default=0, ge=0, le=50, description="number of untried admissible actions to suggest")
    limit: int = Field(default=10, ge=1, description="maximum number of times per episode")


@register
class Stagnation(Kind[StagnationParams]):
    """A note when the last ``steps`` observations brought nothing that had not been seen earlier in the episode."""

    kind = "stagnation"
    layers = ("regulation",)
    Params = StagnationParams
    example = """\
kind: stagnation
about: walks between the same two rooms until the budget is gone
params:
  steps: 4
  note: You have seen all of this. Look where you have not been.
  suggest: 5
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Append the note to the last user message."""
        seen = [turn.observation for turn in context.history] + [context.observation]
        steps = self.params.steps
        if len(seen) <= steps or not set(seen[-steps:]) <= set(seen[:-steps]):
            return None
        if context.count_fired(self.name) >= self.params.limit:
            return None
        note = self.params.note
        fresh = untried(context, context.admissible or ())[: self.params.suggest]
        if fresh:
            note += "\nNot tried here yet: " + ", ".join(fresh)
        return draft.add(after=note)
