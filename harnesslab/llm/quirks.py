"""The one table of what models refuse or call otherwise, keyed by the model's name.

A model that is not listed gets the plain OpenAI body. A refusal that the table does not know ends in
an error that says which argument to leave out; nothing is learned silently, because a recording is
keyed by the exact body and has to be found again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Quirk:
    """What to change in a body: fields that are dropped, fields that have another name."""

    pattern: str = ""
    drop: frozenset[str] = frozenset()
    rename: Mapping[str, str] = field(default_factory=dict)

    def apply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body as this model takes it."""
        return {self.rename.get(name, name): value for name, value in body.items() if name not in self.drop}


PLAIN = Quirk()

_SAMPLING = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs"})

QUIRKS: tuple[Quirk, ...] = (
    # OpenAI's reasoning models: only the default temperature, and max_tokens goes by another name. The "chat"
    # variants do not reason and are plain.
    Quirk(r"^(openai/)?(o[1-9]|gpt-5)(?!.*chat)", _SAMPLING, {"max_tokens": "max_completion_tokens"}),
    # DeepSeek's reasoner takes no sampling fields besides the token limit.
    Quirk(r"^(deepseek/)?deepseek-(reasoner|r1)", _SAMPLING),
)


def quirk_of(model: str) -> Quirk:
    """The first quirk whose pattern fits the model's name, else none."""
    name = model.lower()
    return next((quirk for quirk in QUIRKS if re.search(quirk.pattern, name)), PLAIN)
