"""``regulation/no_repeat``: do not do the same thing twice in the same situation."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from harnesslab.harness.actions import key, shown, tried_here, untried
from harnesslab.harness.context import Context, Decision, Draft, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.regexes import Regex


class NoRepeatParams(Params):
    """Parameters of ``no_repeat``."""

    limit: int = Field(
        default=5, ge=1, description="maximum number of withheld actions per episode, where there are no choices"
    )
    allow: Regex | None = Field(default=None, description="actions that match may be repeated")
    message: str = Field(
        default="You already did this here and nothing came of it. Do something else.",
        max_length=2000,
        description="shown when an action is withheld",
    )


@register
class NoRepeat(Kind[NoRepeatParams]):
    """Actions already given in this situation leave the choices; without choices they are withheld.

    A situation is an observation, word for word; an invalid step does not change it. The choices are never emptied:
    where everything was tried, everything stays.
    """

    kind = "no_repeat"
    layers = ("regulation",)
    Params = NoRepeatParams
    example = """\
kind: no_repeat
about: sends the same query until the budget is gone
params: {limit: 3}
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Narrow the choices."""
        if draft.choices is None or not context.history:
            return None
        fresh = set(untried(context, draft.choices))
        kept = tuple(choice for choice in draft.choices if choice in fresh or self._allowed(choice))
        return replace(draft, choices=kept) if kept and len(kept) < len(draft.choices) else None

    def regulate(self, context: Context, proposal: Proposal) -> Decision | None:
        """Withhold a repeated action, a bounded number of times and never the last one that is left."""
        action = proposal.action
        if action is None or proposal.withheld or not context.history:
            return None
        if key(action) not in tried_here(context) or self._allowed(shown(action)):
            return None
        if context.admissible is not None and not untried(context, context.admissible):
            return None
        if context.count_fired(self.name) >= self.params.limit:
            return None
        return Decision(note=self.params.message, withhold=True)

    def _allowed(self, text: str) -> bool:
        return self.params.allow is not None and self.params.allow.search(text) is not None
