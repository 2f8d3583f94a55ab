"""What interventions remember of one episode: a small JSON object each, kept by whoever owns the episode.

Kept as text, so that nothing in it is shared with the code that wrote it.
"""

from __future__ import annotations

import json
from typing import Any

MAX_MEMORY = 16_000
"""Characters of one intervention's memory as JSON."""


class Memory:
    """The memories of one episode by the name of the intervention."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def of(self, name: str) -> dict[str, Any]:
        """A fresh copy of what an intervention remembers; empty at first."""
        kept = self._kept.get(name)
        found: dict[str, Any] = {} if kept is None else json.loads(kept)
        return found

    def keep(self, name: str, memory: Any) -> None:
        """Remember this from now on. Raises ValueError for what is not a small JSON object."""
        if not memory and name not in self._kept:
            return
        if not isinstance(memory, dict):
            raise ValueError(f"memory must be an object, not {type(memory).__name__}")
        try:
            text = json.dumps(memory, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"memory is not plain JSON: {error}") from None
        if len(text) > MAX_MEMORY:
            raise ValueError(f"memory takes {len(text)} characters as JSON; at most {MAX_MEMORY} are kept")
        self._kept[name] = text

    def snapshot(self) -> dict[str, str]:
        """What is remembered now, for :meth:`restore`."""
        return dict(self._kept)

    def restore(self, kept: dict[str, str]) -> None:
        """Remember what was remembered then."""
        self._kept = dict(kept)
