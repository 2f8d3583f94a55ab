"""One POST to an OpenAI-compatible endpoint: retries, one limiter for all callers, errors that say what to do."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm.body import Constrain
from harnesslab.llm.failures import clip, explain_status, public_url, refused_field, status_cause

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from tenacity import RetryCallState

_NEVER_SEEN_PATIENCE = 10.0  # a wrong address is told soon; an endpoint that has answered before is waited for
_RETRIED = {408, 409, 425, 429}


@dataclass(frozen=True, slots=True)
class Connection:
    """How an endpoint is used.

    ``timeout``: seconds for one try. ``patience``: seconds for all tries of one request together, waits included.
    ``concurrency``: requests in flight at once. ``constrain``: how choices are enforced; None asks the server once.
    """

    timeout: float = 120.0
    patience: float = 600.0
    concurrency: int = 8
    constrain: Constrain | None = None

    def __post_init__(self) -> None:
        if self.timeout <= 0 or self.patience < 0 or self.concurrency < 1:
            raise ConfigError("Connection: timeout must be above 0, patience at least 0, concurrency at least 1")


@dataclass(slots=True)
class _Session:
    client: AsyncOpenAI
    slots: asyncio.Semaphore


class Transport:
    """The way to one endpoint. May be used from several event loops, each gets its own connections."""

    def __init__(self, base_url: str, api_key: str | None, connection: Connection):
        self.base_url, self._key, self._connection = base_url, api_key, connection
        self.where = f"the endpoint {public_url(base_url)}"
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, _Session] = WeakKeyDictionary()
        self._paused_until = 0.0
        self._answered = False
        self._left_out: dict[str, str] = {}

    async def post(self, body: Mapping[str, Any], hint: str = "") -> tuple[Any, float]:
        """Send ``body``; return what came back (JSON value or text) and the seconds of the try that succeeded.

        ``hint`` is added to the error for a model that the endpoint does not know. Raises BackboneError.
        """
        import openai
        import tenacity

        begun = time.monotonic()
        tries = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(_is_passing),
            wait=self._wait,
            stop=self._stop,
            reraise=True,
        )
        try:
            return await tries(self._try, self._accepted(body))
        except openai.APIStatusError as error:
            told = clip(_message(error))
            model = str(body.get("model", ""))
            refused = refused_field(told, error.body, body) if error.status_code in (400, 422) else ""
            if self._give_up_field(refused, told, model):
                return await self.post(body, hint)
            raise BackboneError(
                explain_status(
                    error.status_code,
                    told,
                    model=model,
                    where=self.where,
                    detail=hint,
                    refused=refused,
                    keyless=self._key is None,
                ),
                cause=status_cause(error.status_code, told, error.code),
            ) from None
        except (openai.APITimeoutError, TimeoutError):
            raise BackboneError(
                f"{self.where} did not answer within {self._connection.timeout:g} s, tried for "
                f"{time.monotonic() - begun:.0f} s; raise Connection(timeout=...) or check the server",
                cause="timeout" if self._answered else "unreachable",
            ) from None
        except openai.APIConnectionError as error:
            cause = clip(error.__cause__ or error)
            raise BackboneError(
                f"{self.where} cannot be reached ({cause}), tried for {time.monotonic() - begun:.0f} s; "
                "check base_url and that the server is running",
                cause="unreachable",
            ) from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise BackboneError(
                f"{self.where} did not answer with JSON ({clip(error)}); is base_url an "
                "OpenAI-compatible endpoint (…/v1)?",
                cause="garbled",
            ) from None

    def _accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body without the fields that this endpoint has refused, or with their other names."""
        return {self._left_out.get(name, name): value for name, value in body.items() if self._left_out.get(name, name)}

    def _give_up_field(self, field: str, told: str, model: str) -> bool:
        """Whether to ask again without a refused field, or with its other name; says so once.

        Only where what is measured stays the same: the seed, and the two names of the token limit.
        """
        instead = {"seed": "", "max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
        if field not in instead or field in self._left_out or (instead[field] and "large" in told):
            return False
        self._left_out[field] = instead[field]
        done = f"'{instead[field]}' is sent in its place" if instead[field] else "it is left out from now on"
        warnings.warn(f"'{model}' at {self.where} refuses the field '{field}'; {done}.", stacklevel=2)
        return True

    async def _try(self, body: dict[str, Any]) -> tuple[Any, float]:
        session = self._session()
        async with session.slots:
            while (pause := self._paused_until - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            begun = time.perf_counter()
            # The client's own timeout is one between two bytes; a server that drips must not hold a slot for ever.
            async with asyncio.timeout(self._connection.timeout):
                reply = await session.client.post("/chat/completions", cast_to=object, body=body)
            self._answered = True
            return reply, time.perf_counter() - begun

    def _session(self) -> _Session:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            from openai import AsyncOpenAI

            client = AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or "none",
                timeout=self._connection.timeout,
                max_retries=0,
            )
            self._sessions[loop] = _Session(client, asyncio.Semaphore(self._connection.concurrency))
        return self._sessions[loop]

    def _wait(self, state: RetryCallState) -> float:
        """Seconds until the next try: what the server asks for, else 0.5 s doubling to 30 s, with jitter."""
        import tenacity

        error = _status_error(state)
        asked = retry_after(error.response.headers) if error else None
        own = tenacity.wait_exponential(multiplier=0.5, max=30) + tenacity.wait_random(0, 0.5)
        seconds = own(state) if asked is None else asked
        if error and error.status_code == 429:
            # One refused request slows all of them down: the limit is the account's, not the request's.
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)
        return seconds

    def _stop(self, state: RetryCallState) -> bool:
        patience = self._connection.patience
        if not self._answered and _status_error(state) is None:
            patience = min(patience, _NEVER_SEEN_PATIENCE)
        return (state.seconds_since_start or 0.0) + state.upcoming_sleep > patience

    def close(self) -> None:
        """Close the connections of every loop that still runs. Safe to call twice."""
        for loop, session in list(self._sessions.items()):
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(session.client.close(), loop)
        self._sessions.clear()


def _status_error(state: RetryCallState) -> APIStatusError | None:
    """The HTTP error that the last try ended with; None when there was no reply at all."""
    from openai import APIStatusError

    error = state.outcome.exception() if state.outcome else None
    return error if isinstance(error, APIStatusError) else None


def _is_passing(error: BaseException) -> bool:
    """Whether trying again can help."""
    from openai import APIConnectionError, APIStatusError

    if isinstance(error, APIStatusError):
        if error.code == "insufficient_quota":
            return False
        return error.status_code in _RETRIED or (error.status_code >= 500 and error.status_code != 501)
    return isinstance(error, (APIConnectionError, TimeoutError))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait: ``retry-after-ms``, or ``retry-after`` in seconds or as an HTTP date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        given = headers.get(name)
        if not given:
            continue
        try:
            return max(0.0, float(given) * unit)
        except ValueError:
            pass
        try:
            date = parsedate_to_datetime(given)
        except ValueError:
            continue
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (date - datetime.now(UTC)).total_seconds())
    return None


def _message(error: APIStatusError) -> str:
    body = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        told = inner.get("message", inner) if isinstance(inner, Mapping) else inner
        code = inner.get("code") if isinstance(inner, Mapping) else None
        return f"{told} ({code})" if code else str(told)
    return str(body or "")
