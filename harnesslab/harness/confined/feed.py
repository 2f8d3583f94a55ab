"""Of a context, what the child has not been sent yet: a hook costs the same at the first step and at the thousandth."""

from __future__ import annotations

from typing import Any

from harnesslab.harness.context import Context
from harnesslab.harness.jsonform import to_json

_FIELDS = ("instruction", "observation", "admissible", "tools", "step", "budget", "protocol")


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
        # Turns that are the same objects are equal at the price of a pointer each.
        kept = len(last.history) if context.history[: len(last.history)] == last.history else 0
        return {"changed": changed, "kept": kept, "turns": to_json(context.history[kept:])}
