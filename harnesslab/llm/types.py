"""What goes to a backbone and what comes back. Plain dataclasses: they are made once a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the model.

    ``messages`` are OpenAI chat messages. ``choices``: the reply must be one of these texts exactly.
    ``seed``, ``temperature`` and ``max_tokens`` override the backbone's own sampling where set.
    ``options`` is never sent: the complete replies that a control backbone may pick from.
    """

    messages: tuple[Mapping[str, Any], ...]
    choices: tuple[str, ...] | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply. ``body`` is the exact request body that was sent; seconds are wall time of the live call.

    ``model`` is the name that the server reported. ``cached`` is true when the reply was replayed.
    Token counts are the server's; 0 where it reports none. ``tool_calls`` are ``{"id", "name", "arguments"}``, the
    arguments an object, or the text that could not be read as one; calls in OpenAI's nested form are put into this shape.
    """

    text: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    provider: str = ""
    seconds: float = 0.0
    cached: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)


class Backbone(Protocol):
    """A frozen LLM, or a control that stands in its place."""

    @property
    def identity(self) -> dict[str, Any]:
        """What a measurement with this backbone is a measurement of: model, sampling, server. Plain JSON."""
        ...

    @property
    def constrains(self) -> bool:
        """Whether ``Request.choices`` is enforced while decoding."""
        ...

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """Answer one request. ``repeat`` tells independent repeats of an identical request apart.

        Raises BackboneError when no answer can be had, ReplayMiss when a recording lacks the request.
        """
        ...
