"""``regulation/loop_breaker``: get out of a circle."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from harnesslab.harness.actions import key, situations, untried, words
from harnesslab.harness.context import Context, Decision, Draft, Proposal
from harnesslab.harness.kind import Kind, Params, register


class LoopBreakerParams(Params):
    """Parameters of ``loop_breaker``."""

    length: int = Field(default=4, ge=1, le=20, description="longest cycle to look for, in steps")
    times: int = Field(default=2, ge=2, le=20, description="rounds after which a cycle counts as a loop")
    note: str = Field(
        default="You are going round in circles. Do something that you have not done yet.",
        min_length=1,
        max_length=2000,
        description="shown next to the observation while the last steps are a loop",
    )
    force: bool = Field(
        default=False,
        description="where admissible actions are known, leave only those not yet given in this situation, and replace any other",
    )
    limit: int = Field(default=10, ge=1, description="maximum number of steps per episode in which it fires")


@register
class LoopBreaker(Kind[LoopBreakerParams]):
    """The same cycle of observations and actions, up to ``length`` steps long, was done ``times`` times in a row.

    Then a note, or with ``force`` an action that is new here: first the one that shares most words with the
    instruction. With everything tried, nothing is forced.
    """

    kind = "loop_breaker"
    layers = ("regulation",)
    Params = LoopBreakerParams
    example = """\
kind: loop_breaker
about: opens and closes the same cupboard for ever
params: {length: 3, times: 2, force: true}
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Tell the agent, and with ``force`` narrow the choices."""
        if not self._looping(context):
            return None
        draft = draft.add(after=self.params.note)
        fresh = untried(context, draft.choices or ()) if self.params.force else ()
        return replace(draft, choices=fresh) if fresh else draft

    def regulate(self, context: Context, proposal: Proposal) -> Decision | None:
        """With ``force``, replace an action that goes on with the loop."""
        if not self.params.force or not context.admissible or not self._looping(context):
            return None
        fresh = untried(context, context.admissible)
        if not fresh or (isinstance(proposal.action, str) and key(proposal.action) in map(key, fresh)):
            return None
        task = set(words(context.instruction))
        return Decision(action=max(fresh, key=lambda action: len(task & set(words(action)))))

    def _looping(self, context: Context) -> bool:
        """Whether the last steps are a loop and the limit is not used up."""
        *places, here = situations(context)
        path = [
            (p, key(t.action) if t.action is not None else "") for p, t in zip(places, context.history, strict=True)
        ]
        for length in range(1, self.params.length + 1):
            span = length * self.params.times
            if span > len(path):
                return False
            cycle = path[-length:]
            if cycle * self.params.times == path[-span:] and here == cycle[0][0]:
                return context.count_fired(self.name) < self.params.limit
        return False
