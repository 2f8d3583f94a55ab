"""``action/snap``: what nearly is an action becomes that action."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from harnesslab.harness.actions import is_admissible
from harnesslab.harness.context import Action, Context, Proposal
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.protocol import function


class SnapParams(Params):
    """Parameters of ``snap``."""

    threshold: float = Field(default=75, ge=0, le=100, description="minimum similarity; 100 means equal")
    other_verbs: bool = Field(default=True, description="try other verbs if no action with the same verb is near")
    enums: bool = Field(default=True, description="also snap tool arguments to the values that the schema allows")


@register
class Snap(Kind[SnapParams]):
    """The nearest admissible action, the same first word preferred, if it is near enough.

    Similarity is the better of rapidfuzz's plain ratio and its ratio of sorted words, case ignored. Ties go to
    the action that the environment lists first.
    """

    kind = "snap"
    layers = ("action",)
    stage = 40
    Params = SnapParams
    example = """\
kind: snap
about: '"take the apple" is meant as "take apple 1"'
params: {threshold: 70}
"""

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Replace an action that is not possible."""
        action = proposal.action
        if action is None or proposal.withheld:
            return None
        snapped = self._arguments(context, action) if isinstance(action, dict) else self._action(context, action)
        return None if snapped is None else replace(proposal, action=snapped)

    def _action(self, context: Context, action: str) -> str | None:
        if not context.admissible or is_admissible(context, action):
            return None
        verb = _verb(action)
        same = [other for other in context.admissible if _verb(other) == verb]
        found = self._nearest(action, same)
        return self._nearest(action, context.admissible) if found is None and self.params.other_verbs else found

    def _arguments(self, context: Context, action: dict[str, Any]) -> Action | None:
        tool = next((t for t in context.tools or () if function(t).get("name") == action.get("name")), None)
        if tool is None or not self.params.enums:
            return None
        properties = function(tool).get("parameters", {}).get("properties", {})
        arguments = dict(action.get("arguments", {}))
        for name, value in arguments.items():
            allowed = [v for v in properties.get(name, {}).get("enum", ()) if isinstance(v, str)]
            if isinstance(value, str) and allowed and value not in allowed:
                arguments[name] = self._nearest(value, allowed) or value
        return {**action, "arguments": arguments} if arguments != action.get("arguments", {}) else None

    def _nearest(self, text: str, options: Sequence[str]) -> str | None:
        scored = zip(_similarities(text, options), options, strict=True)
        score, best = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        return best if score >= self.params.threshold else None


def _verb(action: str) -> str:
    return (action.split() or [""])[0].casefold()


def _similarities(text: str, options: Iterable[str]) -> list[float]:
    from rapidfuzz import fuzz

    plain = text.casefold().strip()
    return [max(fuzz.ratio(plain, other), fuzz.token_sort_ratio(plain, other)) for other in map(str.casefold, options)]
