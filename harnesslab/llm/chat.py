"""What every backbone that speaks chat.completion has in common: body, recording, identity."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harnesslab.llm.body import Constrain, Sampling, build_body
from harnesslab.llm.quirks import PLAIN, Quirk
from harnesslab.llm.types import Backbone, Completion, Request
from harnesslab.redaction import scrub_json

if TYPE_CHECKING:
    from harnesslab.llm.record import Recording


def _scrubbed(completion: Completion) -> Completion:
    """The completion without any secret that a server echoed or the body had to carry."""
    fields = ("text", "tool_calls", "finish_reason", "model", "provider", "body")
    return replace(completion, **{name: scrub_json(getattr(completion, name)) for name in fields})


class ChatBackbone(Backbone, ABC):
    """A frozen model behind a chat endpoint, in this process or elsewhere.

    Subclasses say how one body is answered (:meth:`_ask`), what they are (:attr:`spec`,
    :meth:`live_identity`) and how choices are enforced (:meth:`_constrain`).
    """

    def __init__(self, model: str, sampling: Sampling, recording: Recording | None, quirk: Quirk = PLAIN):
        self.model = model
        self._sampling = sampling
        self._recording = recording
        self._quirk = quirk
        self._served: Counter[tuple[str, str]] = Counter()

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What was asked for, known without the model or a server: plain JSON. Recordings are matched by it."""

    @abstractmethod
    def live_identity(self) -> dict[str, Any]:
        """``spec`` and what the live model or server adds to it."""

    @abstractmethod
    def _constrain(self) -> Constrain:
        """How choices are enforced."""

    @abstractmethod
    async def _ask(self, body: Mapping[str, Any]) -> Completion:
        """Answer one body live."""

    @property
    def identity(self) -> dict[str, Any]:
        """What a measurement with this backbone is a measurement of.

        Under a recording it is the recorded one, so that a replay needs neither the model nor its server.
        """
        recorded = self._recorded_identity()
        return recorded if recorded is not None else self.live_identity()

    def _recorded_identity(self) -> dict[str, Any] | None:
        return self._recording.identity(self.spec) if self._recording is not None else None

    @property
    def constrains(self) -> bool:
        """Whether ``Request.choices`` is enforced while decoding."""
        return self._constrain() != "none"

    @property
    def served(self) -> dict[tuple[str, str], int]:
        """How often each (model, provider) that a server reported has answered."""
        return dict(self._served)

    def body(self, request: Request, repeat: int = 0) -> dict[str, Any]:
        """The exact body that is sent for ``request``; it holds no key."""
        return build_body(
            self.model,
            request,
            repeat,
            sampling=self._sampling,
            quirk=self._quirk,
            constrain=self._constrain() if request.choices else "none",
        )

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """Answer one request; see :class:`harnesslab.llm.types.Backbone`."""
        body = self.body(request, repeat)
        if self._recording is None:
            return await self._live(body)
        found = await self._recording.through(body, repeat, lambda: self._live(body), self)
        return _scrubbed(found)

    async def _live(self, body: Mapping[str, Any]) -> Completion:
        completion = _scrubbed(await self._ask(body))
        self._served[completion.model, completion.provider] += 1
        if len(self._served) == 2 and self._served[completion.model, completion.provider] == 1:
            names = " and ".join(sorted(" by ".join(filter(None, pair)) or "unnamed" for pair in self._served))
            warnings.warn(
                f"'{self.model}' is answered by more than one model: {names}. Scores of a mix do not compare; "
                "pin the model's exact version or the provider.",
                stacklevel=2,
            )
        return completion

    def close(self) -> None:
        """Give back what is held. Safe to call twice."""
        if self._recording is not None:
            self._recording.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"
