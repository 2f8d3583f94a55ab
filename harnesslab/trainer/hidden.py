"""The tasks that no proposer may see, taken out of what people and criteria wrote about candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "[a task]"
SHORT = 3
"""Ids of fewer characters, and plain numbers, are taken for words: a count in a sentence must stay."""


class Hidden:
    """Knows the ids of hidden tasks, and masks them in text."""

    def __init__(self, ids: Iterable[str]):
        self._ids = sorted((one for one in ids if len(one) >= SHORT and not one.isdigit()), key=len, reverse=True)
        self._pattern: re.Pattern[str] | None = None

    def mask(self, text: str) -> str:
        """The text with a placeholder for each hidden task."""
        if not any(one in text for one in self._ids):
            return text
        if self._pattern is None:
            self._pattern = re.compile("|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in self._ids))
        return self._pattern.sub(HIDDEN, text)
