"""Record and replay in front of a backbone that has no ``cache`` argument of its own."""

from __future__ import annotations

from typing import Any

from harnesslab.errors import ConfigError
from harnesslab.llm.aside import ask
from harnesslab.llm.chat import ChatBackbone
from harnesslab.llm.record import Recording
from harnesslab.llm.types import Backbone, Completion, Request


class Cached:
    """``backbone`` behind a recording. For LLM and LLM.local give ``cache=`` instead: that replays without a server.

    The key is the backbone's identity and the whole request, because the body that it sends is not known here.
    """

    def __init__(self, backbone: Backbone, recording: Recording):
        if isinstance(backbone, ChatBackbone):
            raise ConfigError(f"{backbone!r} records by itself: give it cache=... instead of wrapping it")
        self._backbone, self._recording = backbone, recording

    @property
    def spec(self) -> dict[str, Any]:
        """The backbone's identity."""
        return self._backbone.identity

    @property
    def identity(self) -> dict[str, Any]:
        """The backbone's identity."""
        return self._backbone.identity

    def live_identity(self) -> dict[str, Any]:
        """The backbone's identity."""
        return self._backbone.identity

    @property
    def constrains(self) -> bool:
        """As the backbone does."""
        return self._backbone.constrains

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """The recorded reply, else a live one that is recorded."""
        body = {
            "model": self._backbone.identity,
            "messages": [dict(message) for message in request.messages],
            "choices": request.choices,
            "tools": request.tools,
            "options": request.options,
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
        }
        return await self._recording.through(body, repeat, lambda: ask(self._backbone, request, repeat), self)

    def close(self) -> None:
        """Close the recording; the backbone stays its owner's."""
        self._recording.close()
