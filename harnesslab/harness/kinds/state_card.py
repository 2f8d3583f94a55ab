"""``contract/state_card``: what is known, on one card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from harnesslab.harness.actions import shown, situations
from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.prompt import clip
from harnesslab.harness.regexes import Regex


class StateCardParams(Params):
    """Parameters of ``state_card``. Patterns give their first group, or the whole match."""

    title: str = Field(default="What you know:", max_length=500, description="the first line")
    steps_left: bool = Field(default=True, description="say how many steps are left")
    results: int = Field(default=0, ge=0, le=20, description="number of recent actions to repeat with their results")
    result_chars: int = Field(default=200, ge=10, le=5000, description="characters of each repeated result")
    tried: int = Field(default=8, ge=0, le=50, description="number of actions already tried in this situation to list")
    facts: dict[str, Regex] = Field(default={}, description="label to pattern; the newest match is shown")
    gain: Regex | None = Field(
        default=None, description="pattern for a thing that enters the inventory, in an observation"
    )
    lose: Regex | None = Field(
        default=None, description="pattern for pattern for pattern for pattern for a thing that leaves it"
    )
    place: Literal["system", "before", "after"] = Field(default="after", description="where the card is placed")


@register
class StateCard(Kind[StateCardParams]):
    """Steps left, last results, what was tried here, facts and an inventory read from the observations by pattern."""

    kind = "state_card"
    layers = ("contract",)
    Params = StateCardParams
    example = """\
kind: state_card
about: forgets what it carries and where it is
params:
  facts: {You are at: 'You are (?:now )?at the ([\\w ]+)'}
  gain: 'You take the ([\\w ]+)'
  lose: 'You put the ([\\w ]+?) (?:in|on)'
"""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Add the card; silent where there is nothing to say."""
        lines = list(self._lines(context))
        if not lines:
            return None
        card = "\n".join((self.params.title, *lines))
        return draft.add(**{self.params.place: card})

    def _lines(self, context: Context) -> Iterator[str]:
        params = self.params
        seen = [turn.observation for turn in context.history] + [context.observation]
        for label, pattern in params.facts.items():
            value = next((found[-1] for text in reversed(seen) if (found := pattern.extract(text))), None)
            if value is not None:
                yield f"- {label}: {value}"
        if params.gain is not None:
            yield f"- You have: {', '.join(self._inventory(seen)) or 'nothing'}"
        for turn in context.history[len(context.history) - params.results :] if params.results else ():
            if turn.action is not None:
                yield f"- {shown(turn.action)} -> {clip(turn.result.strip(), params.result_chars)}"
        *places, here = situations(context)
        tried = [shown(t.action) for t, p in zip(context.history, places, strict=True) if t.action and p == here]
        if tried and params.tried:
            yield f"- Already tried here: {', '.join(list(dict.fromkeys(tried))[-params.tried :])}"
        if params.steps_left:
            yield f"- Steps left: {context.steps_left}"

    def _inventory(self, seen: list[str]) -> list[str]:
        """What was gained and not lost since, in order. In one observation, losing comes after gaining."""
        have: dict[str, None] = {}
        for text in seen:
            for thing in self.params.gain.extract(text) if self.params.gain is not None else ():
                have[thing] = None
            for thing in self.params.lose.extract(text) if self.params.lose is not None else ():
                have.pop(thing, None)
        return list(have)
