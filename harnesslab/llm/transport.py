"""One POST to an OpenAI-compatible endpoint: retries, one limiter for all callers, errors that say what to do."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm.body import Constrain
from harnesslab.llm.failures import clip, explain_status, public_url, status_cause
from harnesslab.llm.refusals import Refusal, refusal

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from tenacity import RetryCallState

_NEVER_SEEN_PATIENCE = 10.0  # a wrong address is told soon; an endpoint that has answered before is waited for
_CONNECT_SECONDS = 10.0
_NOT_CONNECTED = {"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol", "TooManyRedirects", "gaierror"}
_READ = 20_000
"""Characters of an error's body that are looked at."""
_RETRIED = {408, 409, 425, 429}
_INSTEAD = {"seed": "", "max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Fields that can go without changing what is measured, and their other names."""


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


T = TypeVar("T")
Read: TypeAlias = Callable[[Any, float], T]


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

    async def post(self, body: Mapping[str, Any], read: Read[T], hint: str = "") -> T:
        """Send ``body``; return what ``read`` makes of the reply.

        ``read`` gets a JSON value or text and the seconds of this try; it raises BackboneError for what is not a reply.
        ``hint`` is added to the error for a model that the endpoint does not know. Raises BackboneError.
        """
        import openai
        import tenacity

        begun = time.monotonic()
        tries = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(self._is_passing),
            wait=self._wait,
            stop=self._stop,
            reraise=True,
        )
        sent = self._accepted(body)
        try:
            return await tries(self._try, sent, read)
        except openai.APIStatusError as error:
            said, model = _message(error.body), str(body.get("model", ""))
            refused = refusal(error.body, sent) if error.status_code in (400, 422) else Refusal()
            cause = status_cause(error.status_code, said, error.code, refused)
            if cause == "setup" and self._give_up_field(refused, model):
                return await self.post(body, read, hint)
            raise BackboneError(
                explain_status(
                    error.status_code,
                    clip(said),
                    cause,
                    model=model,
                    where=self.where,
                    detail=hint,
                    refused=refused,
                    keyless=self._key is None,
                ),
                cause=cause,
            ) from None
        except (openai.APITimeoutError, TimeoutError) as error:
            raise BackboneError(
                f"{self.where} did not answer within {self._connection.timeout:g} s, tried for "
                f"{time.monotonic() - begun:.0f} s; raise Connection(timeout=...) or check the server",
                cause="unreachable" if _never_connected(error) else "timeout",
            ) from None
        except openai.APIConnectionError as error:
            told, tried = clip(error.__cause__ or error), f"tried for {time.monotonic() - begun:.0f} s"
            if _never_connected(error):
                raise BackboneError(
                    f"{self.where} cannot be reached ({told}), {tried}; check base_url and that the server is running",
                    cause="unreachable",
                ) from None
            raise BackboneError(f"{self.where} broke off its reply ({told}), {tried}", cause="garbled") from None
        except (openai.OpenAIError, ValueError, RecursionError) as error:
            raise BackboneError(
                f"{self.where} did not answer with JSON ({clip(error)}); is base_url an "
                "OpenAI-compatible endpoint (…/v1)?",
                cause="garbled",
            ) from None

    def _accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body without the fields that this endpoint has refused, or with their other names."""
        return {self._left_out.get(name, name): value for name, value in body.items() if self._left_out.get(name, name)}

    def _give_up_field(self, refused: Refusal, model: str) -> bool:
        """Whether to ask again without a refused field, or with its other name; says so once.

        Only where what is measured stays the same: the seed, and the two names of the token limit.
        """
        instead = _INSTEAD.get(refused.field)
        if instead is None or (instead and refused.value) or instead in self._left_out:
            return False
        if refused.field not in self._left_out:  # else another request was told so in the meantime
            self._left_out[refused.field] = instead
            done = f"'{instead}' is sent in its place" if instead else "it is left out from now on"
            warnings.warn(f"'{model}' at {self.where} refuses the field '{refused.field}'; {done}.", stacklevel=2)
        return True

    async def _try(self, body: dict[str, Any], read: Read[T]) -> T:
        session = self._session()
        async with session.slots:
            while (pause := self._paused_until - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            begun = time.perf_counter()
            # The client's own timeout is one between two bytes; a server that drips must not hold a slot for ever.
            async with asyncio.timeout(self._connection.timeout):
                reply = await session.client.post("/chat/completions", cast_to=object, body=body)
            found = read(reply, time.perf_counter() - begun)
            self._answered = True
            return found

    def _session(self) -> _Session:
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            from openai import AsyncOpenAI, Timeout

            seconds = self._connection.timeout
            client = AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._key or "none",
                timeout=Timeout(seconds, connect=min(seconds / 2, _CONNECT_SECONDS)),
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
        seconds = asked or own(state)  # "0" and a date in the past are no reason to ask without a pause
        if error and error.status_code == 429:
            # One refused request slows all of them down: the limit is the account's, not the request's.
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)
        return seconds

    def _is_passing(self, error: BaseException) -> bool:
        """Whether trying again can help."""
        import openai

        if isinstance(error, openai.APIStatusError):
            if status_cause(error.status_code, _message(error.body), error.code) in ("quota", "context"):
                return False
            return error.status_code in _RETRIED or (error.status_code >= 500 and error.status_code != 501)
        if isinstance(error, BackboneError):
            # Until an endpoint has answered, what cannot be read says that it speaks something else.
            return error.cause in ("busy", "server") or (error.cause == "garbled" and self._answered)
        if isinstance(error, (openai.APIConnectionError, TimeoutError)):
            return True
        return self._answered and isinstance(error, (ValueError, RecursionError))

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


def _never_connected(error: BaseException) -> bool:
    """Whether no connection came about: refused, DNS, TLS, a proxy. The client's HTTP library may be one of two."""
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ in _NOT_CONNECTED:
            return True
        cause = cause.__cause__
    return False


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


def _message(body: Any) -> str:
    """The server's own words in the body of an error, and its code."""
    inner = body[0] if isinstance(body, list) and body else body
    inner = inner.get("error", inner) if isinstance(inner, Mapping) else inner
    if not isinstance(inner, Mapping):
        return str(inner or "")[:_READ]
    told = next((inner[key] for key in ("message", "detail", "errors") if inner.get(key)), inner)
    meta = inner.get("metadata")
    raw = meta.get("raw") if isinstance(meta, Mapping) else None
    parts = (told, raw, f"({inner['code']})" if inner.get("code") else None)
    return " ".join(str(part)[:_READ] for part in parts if part)
