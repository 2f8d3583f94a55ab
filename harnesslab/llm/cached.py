"""Record and replay in front of a backbone that has no ``cache`` argument of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError
from harnesslab.llm.chat import ChatBackbone
from harnesslab.llm.record import Recording, as_recording
from harnesslab.llm.types import Completion, MinimalBackbone, Request
from harnesslab.llm.wrapper import Wrapper


class Cached(Wrapper):
    """``backbone`` behind a recording, or the path of one. For LLM and LLM.local give ``cache=`` instead: that replays without a server.

    The key is the backbone's identity and the whole request, because the body that it sends is not known here.
    """

    def __init__(self, backbone: MinimalBackbone, recording: str | Path | Recording):
        if isinstance(backbone, ChatBackbone):
            raise ConfigError(f"{backbone!r} records by itself: give it cache=... instead of wrapping it")
        super().__init__(backbone)
        self._recording = as_recording(recording)

    @property
    def spec(self) -> dict[str, Any]:
        """The backbone's identity."""
        return dict(self.identity)

    def live_identity(self) -> dict[str, Any]:
        """The backbone's identity."""
        return dict(self.identity)

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """The recorded reply, else a live one that is recorded."""
        body = {
            "model": self.spec,
            "messages": [dict(message) for message in request.messages],
            "choices": request.choices,
            "tools": request.tools,
            "options": request.options,
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
        }
        live = super().complete
        return await self._recording.through(body, repeat, lambda: live(request, repeat=repeat), self)

    def close(self) -> None:
        """Close the recording; the backbone stays its owner's."""
        self._recording.close()
