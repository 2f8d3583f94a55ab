"""``LLM``: any endpoint that speaks the OpenAI API, and the ways to make the other backbones."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm.body import Constrain, Sampling
from harnesslab.llm.chat import ChatBackbone
from harnesslab.llm.control import FirstControl, Null, OverlapControl, RandomControl, Script, Scripted
from harnesslab.llm.failures import NO_KEY, public_url
from harnesslab.llm.probe import Server, probe
from harnesslab.llm.quirks import quirk_of
from harnesslab.llm.record import Recording, as_recording
from harnesslab.llm.replies import to_completion
from harnesslab.llm.transport import Connection, Transport
from harnesslab.llm.types import Completion, Request
from harnesslab.redaction import remember, remember_environment, remember_settings, remember_url, scrub_json

if TYPE_CHECKING:
    from harnesslab.llm.local import LocalLLM

_OPENAI = "https://api.openai.com/v1"


class LLM(ChatBackbone):
    """A frozen model behind an OpenAI-compatible endpoint.

    ``model``: the name that the endpoint knows. ``base_url``: ends in ``/v1`` as a rule; without it OPENAI_BASE_URL,
    else OpenAI. ``api_key``: without it OPENAI_API_KEY, which is sent only to the address that goes with it, never to a
    ``base_url`` given here. ``temperature`` and ``max_tokens``: None is not sent. ``extra``: further fields
    of the body. ``seed``: sent with each request; by default each draw has its own, which is left out at temperature 0,
    where it would tell equal requests apart; None is never sent. ``connection``: timeouts, patience, concurrency. ``cache``: a :class:`Recording` or the path
    of one; None means none.

    Nothing is sent before the first request. The key is in no repr, error, body or recording.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        temperature: float | None = 0.0,
        max_tokens: int | None = 1024,
        extra: Mapping[str, Any] | None = None,
        connection: Connection | None = None,
        cache: str | Path | Recording | None = None,
        seed: int | Literal["draw"] | None = "draw",
    ):
        remember_environment()
        remember(api_key)
        if not model:
            raise ConfigError("LLM: model is empty; give the name that the endpoint knows")
        url = base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI
        if not _is_http(url):
            raise ConfigError(
                f"LLM: base_url '{public_url(url)}' is not an HTTP URL; expected something like http://host:8000/v1"
            )
        _check_extra(extra)
        remember_settings(dict(extra or {}))
        remember_url(url)
        further = dict(extra or {}) if seed == "draw" else {"seed": seed, **(extra or {})}
        super().__init__(model, Sampling(temperature, max_tokens, None, further), as_recording(cache))
        self._quirk = quirk_of(model)
        self._own_address = bool(base_url)
        self._connection = connection or Connection()
        self._connect(url, api_key)

    def _connect(self, url: str, api_key: str | None) -> None:
        key = api_key or (None if self._own_address else os.environ.get("OPENAI_API_KEY")) or ""
        remember(key, key.strip())
        self._key = key.strip() or None
        if self._key and not re.fullmatch("[!-~]+", self._key):
            raise ConfigError(
                "LLM: the API key has spaces, line breaks or characters outside ASCII in it; copy it again"
            )
        self._transport = Transport(url, self._key, self._connection)
        self._server: Server | None = None
        self._probing = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """For another process: the key stays here, OPENAI_API_KEY is looked up there; connections are made anew."""
        state = dict(self.__dict__)
        del state["_key"], state["_server"], state["_probing"]
        return state | {"_transport": self._transport.base_url}

    def __setstate__(self, state: dict[str, Any]) -> None:
        url = state.pop("_transport")
        self.__dict__.update(state)
        self._connect(url, None)

    @property
    def spec(self) -> dict[str, Any]:
        """Model, address and sampling as asked for."""
        found = {
            "kind": "endpoint",
            "model": self.model,
            "base_url": public_url(self._transport.base_url),
            "sampling": self._sampling.as_dict(),
        }
        cleaned: dict[str, Any] = scrub_json(found)
        return cleaned

    def body(self, request: Request, repeat: int = 0) -> dict[str, Any]:
        body = super().body(request, repeat)
        if body.get("temperature") == 0 and "seed" not in self._sampling.extra:
            body.pop("seed", None)
        return body

    @property
    def concurrency(self) -> int:
        """Requests in flight at once, as the connection allows."""
        return self._connection.concurrency

    def live_identity(self) -> dict[str, Any]:
        server = self._probe()
        return {**self.spec, "server": server.kind, "constrain": self._connection.constrain or server.constrain}

    def _constrain(self) -> Constrain:
        if self._connection.constrain:
            return self._connection.constrain
        recorded = self._recorded_identity()
        if recorded is not None:
            how: Constrain = recorded.get("constrain", "none")
            return how
        return self._probe().constrain

    def _probe(self) -> Server:
        with self._probing:
            if self._server is None:
                self._server = probe(self._transport.base_url, self._key)
            return self._server or Server()

    async def _ask(self, body: Mapping[str, Any]) -> Completion:
        if self._key is None and urlsplit(self._transport.base_url).hostname == "api.openai.com":
            raise BackboneError(
                f"OpenAI needs a key, and {NO_KEY}; set OPENAI_API_KEY, or pass another base_url=...", cause="key"
            )
        listed = self._server.models if self._server else ()
        hint = f" It has: {', '.join(sorted(listed)[:12])}." if listed else ""

        def read(raw: Any, seconds: float) -> Completion:
            return to_completion(raw, body, seconds=seconds, where=self._transport.where)

        return await self._transport.post(body, read, hint)

    def close(self) -> None:
        """Close the connections. Safe to call twice; a later request opens new ones."""
        super().close()
        self._transport.close()

    @staticmethod
    def local(
        name_or_gguf: str | Path,
        *,
        threads: int | None = None,
        context: int = 4096,
        cache_prompt: bool = False,
        temperature: float = 0.0,
        max_tokens: int = 128,
        seed: int = 0,
        cache: str | Path | Recording | None = None,
    ) -> LocalLLM:
        """A frozen model in this process, on the embedded llama.cpp (extra ``local``).

        ``name_or_gguf``: a name of ``harnesslab models list``, or a path to a GGUF file. ``threads``: measured when
        the model is loaded, unless given here or in HARNESSLAB_THREADS. ``context``: tokens of prompt and reply.
        ``cache_prompt``: reuse the prefix of the last prompt; faster, but it changes the numbers, so that the
        same request need not give the same reply. ``cache``: a :class:`Recording` or the path of one.
        """
        from harnesslab.llm.local import LocalLLM

        return LocalLLM(
            name_or_gguf,
            threads=threads,
            context=context,
            cache_prompt=cache_prompt,
            sampling=Sampling(temperature, max_tokens, seed, {"cache_prompt": cache_prompt}),
            recording=as_recording(cache),
        )

    @staticmethod
    def random(seed: int = 0) -> RandomControl:
        """The random control: picks at random among whatever the harness leaves."""
        return RandomControl(seed)

    @staticmethod
    def first() -> FirstControl:
        """The control that always takes the first option that the harness leaves."""
        return FirstControl()

    @staticmethod
    def overlap() -> OverlapControl:
        """The control that takes the option that shares most words with the task and that it has not taken yet."""
        return OverlapControl()

    @staticmethod
    def scripted(script: Script | Sequence[str], name: str = "scripted") -> Scripted:
        """Replies from a function of the messages, or from a list in order; ``name`` is its identity."""
        return Scripted(script, name)

    @staticmethod
    def null(text: str = "") -> Null:
        """A constant reply that costs next to nothing."""
        return Null(text)


def _check_extra(extra: Any) -> None:
    if extra is None:
        return
    if not isinstance(extra, Mapping) or not all(isinstance(name, str) for name in extra):
        raise ConfigError(
            f"LLM: extra is a {type(extra).__name__}; give fields of the body by name: extra={{'top_p': 0.9}}"
        )
    try:
        json.dumps(dict(extra), allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"LLM: extra is not plain JSON: {error}") from None


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0 and url.isprintable()
        )
    except ValueError:  # a port that is not a number
        return False
