"""Of a context, what the child has not been sent yet: a hook costs the same at the first step and at the thousandth."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from harnesslab.harness.context import Context, Turn
from harnesslab.harness.jsonform import to_json

_FIELDS = tuple(field.name for field in fields(Context) if field.name not in ("history", "memory"))
"""Memory travels with each question."""


class Feed:
    """Remembers the context that was sent last."""

    def __init__(self) -> None:
        self._last: Context | None = None

    def news(self, context: Context) -> dict[str, Any]:
        """``changed`` fields, the number of turns to be ``kept``, and the ``turns`` after them."""
        last, self._last = self._last, context
        if last is None:
            return {
                "changed": {name: to_json(getattr(context, name)) for name in _FIELDS},
                "kept": 0,
                "turns": to_json(context.history),
            }
        changed = {
            name: to_json(new)
            for name in _FIELDS
            if (new := getattr(context, name)) is not (old := getattr(last, name)) and new != old
        }
        kept = _shared(context.history, last.history)
        return {"changed": changed, "kept": kept, "turns": to_json(context.history[kept:])}


def _shared(new: tuple[Turn, ...], old: tuple[Turn, ...]) -> int:
    """How many turns both begin with. Turns that are the same objects are equal at the price of a pointer each."""
    if new[: len(old)] == old:
        return len(old)
    for number, (one, other) in enumerate(zip(new, old, strict=False)):
        if one is not other and one != other:
            return number
    return min(len(new), len(old))
