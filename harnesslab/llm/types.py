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
    ``schema``: a JSON schema that the reply is to follow; endpoints that know ``response_format`` enforce it.
    ``options``, ``instruction`` and ``past`` are never sent, and only a control gets them: the complete replies that it may pick from, the task's
    instruction, and its earlier replies in the episode, oldest first.
    """

    messages: tuple[Mapping[str, Any], ...]
    choices: tuple[str, ...] | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    options: tuple[str, ...] = ()
    instruction: str = ""
    past: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None


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


class MinimalBackbone(Protocol):
    """What a backbone cannot do without. A class of your own may end here: the rest of :class:`Backbone` has defaults."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a measurement with this backbone is a measurement of: model, sampling, server. Plain JSON, with ``model``."""
        ...

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """Answer one request. ``repeat`` distinguishes independent repeats of an identical request.

        Raises BackboneError when there is no answer, ReplayMiss when a recording lacks the request.
        """
        ...


class Backbone(MinimalBackbone, Protocol):
    """A frozen LLM, or a control in its place: everything that is read of one, with its default.

    Inherit from it or not: whatever a class does not declare has the default. To stand in front of another backbone,
    inherit from :class:`~harnesslab.llm.wrapper.Wrapper`, which passes all of this on.
    """

    @property
    def constrains(self) -> bool:
        """Whether ``Request.choices`` is enforced while decoding. By default false."""
        return False

    @property
    def control(self) -> bool:
        """Whether it is a control, which is given ``Request.options``; a model never sees them. By default false."""
        return False

    @property
    def concurrency(self) -> int:
        """Requests in flight at once; a run plays as many episodes at a time, unless its settings say otherwise. By default 1."""
        return 1

    @property
    def served(self) -> Mapping[tuple[str, str], int]:
        """How often each (model, provider) that a server reported has answered. By default empty."""
        return {}
