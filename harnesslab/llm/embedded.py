"""llama.cpp inside this process, through xllamacpp: one engine for each file and setting.

``handle_chat_completions`` releases the GIL, so the blocking call runs in a worker thread. Replies are
streamed to a callback only because that is the way to stop one: a callback that returns true ends the
generation at the next token.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm.replies import assemble

THREADS_VARIABLE = "HARNESSLAB_THREADS"

_PROBE = {
    "messages": [{"role": "user", "content": "one two three four five six seven eight"}],
    "max_tokens": 4,
    "temperature": 0,
    "cache_prompt": False,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What makes an engine: file, threads (None: measured), context in tokens, whether prompts are cached."""

    path: Path
    threads: int | None
    context: int
    cache_prompt: bool


class Engine:
    """One loaded model. Requests are answered one after the other."""

    def __init__(self, settings: Settings, threads: int):
        self.threads = threads
        self._server = _start(settings, threads)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="llama")

    async def ask(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        """The chat.completion object for ``body``, and the seconds it took without waiting for others.

        Cancelling the task stops the generation at the next token.
        """
        stop = threading.Event()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, self.generate, dict(body), stop)
        finally:
            stop.set()

    def generate(self, body: dict[str, Any], stop: threading.Event) -> tuple[dict[str, Any], float]:
        """Blocking twin of :meth:`ask`."""
        chunks: list[dict[str, Any]] = []

        def take(chunk: dict[str, Any]) -> bool:
            chunks.append(chunk)
            return stop.is_set()

        if stop.is_set():
            return {}, 0.0
        begun = time.perf_counter()
        streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
        try:
            self._server.handle_chat_completions(streamed, take)
        except (ValueError, RuntimeError, TypeError) as error:
            return {"error": {"message": str(error)}}, 0.0
        return assemble(chunks), time.perf_counter() - begun

    def close(self) -> None:
        """Stop taking requests, wait for the one in flight, free the model."""
        self._worker.shutdown(wait=True, cancel_futures=True)
        self._server = None


_engines: dict[tuple[int, Settings], Engine] = {}
_lock = threading.Lock()


def engine(settings: Settings) -> Engine:
    """The process's engine for ``settings``; loads it the first time (seconds, so call it off the event loop).

    Raises BackboneError where xllamacpp or the file is missing or unusable.
    """
    key = (os.getpid(), settings)  # a forked child inherits the table but not the server's threads
    with _lock:
        if key not in _engines:
            _engines[key] = _load(settings)
        return _engines[key]


async def engine_off_loop(settings: Settings) -> Engine:
    """:func:`engine` for coroutines: loading happens in a thread, a loaded engine costs nothing."""
    loaded = _engines.get((os.getpid(), settings))
    return loaded if loaded is not None else await asyncio.to_thread(engine, settings)


def close_engines() -> None:
    """Free every model that this process has loaded."""
    with _lock:
        for pid, settings in list(_engines):
            loaded = _engines.pop((pid, settings))
            if pid == os.getpid():
                loaded.close()


atexit.register(close_engines)


def _load(settings: Settings) -> Engine:
    threads = settings.threads or threads_from_environment()
    cores = usable_cores()
    if threads or cores == 1:
        return Engine(settings, threads or 1)
    # With other cores busy, all of them together can be twenty times slower than one: measure, then choose.
    best, best_seconds = None, float("inf")
    for count in (1, cores):
        candidate = Engine(settings, count)
        reply, seconds = candidate.generate(dict(_PROBE), threading.Event())
        if "error" not in reply and seconds < best_seconds:
            best, best_seconds, loser = candidate, seconds, best
        else:
            loser = candidate
        if loser is not None:
            loser.close()
    return best or Engine(settings, 1)


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_from_environment() -> int | None:
    """``HARNESSLAB_THREADS`` where it is set. Raises ConfigError if it is not a positive number."""
    given = os.environ.get(THREADS_VARIABLE, "").strip()
    if not given:
        return None
    if not given.isdigit() or int(given) < 1:
        raise ConfigError(f"{THREADS_VARIABLE} is '{given}'; set it to a whole number of at least 1, or unset it")
    return int(given)


def _start(settings: Settings, threads: int) -> Any:
    xllamacpp = require_xllamacpp()
    parameters = _parameters(xllamacpp, settings, threads)
    try:
        return xllamacpp.Server(parameters)
    except (ValueError, RuntimeError) as error:
        raise BackboneError(
            f"{settings.path}: llama.cpp cannot load this file ({error}); is it a whole GGUF model, "
            "and is there enough memory?"
        ) from error


def _parameters(xllamacpp: Any, settings: Settings, threads: int) -> Any:
    """llama.cpp's parameters; whatever could make equal requests give unequal replies is switched off."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(settings.path)
    parameters.model_alias = {settings.path.name}
    parameters.n_ctx = settings.context
    parameters.n_parallel = 1  # replies that share a batch change each other's numbers
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    # Flash attention splits long prompts over the threads, so that the number of threads changes the numbers.
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.cache_prompt = settings.cache_prompt
    parameters.cache_ram_mib = 1024 if settings.cache_prompt else 0
    parameters.verbosity = -1
    # The in-process server also listens on a local port, which cannot be turned off: shut it to everyone else.
    parameters.api_keys = [secrets.token_urlsafe(24)]
    parameters.ui = False
    return parameters


def require_xllamacpp() -> Any:
    """The module xllamacpp. Raises BackboneError that says how to get it."""
    try:
        import xllamacpp
    except ImportError as error:
        raise BackboneError(
            "a local model needs the package xllamacpp: pip install 'jupyter-harnesslab[local]' "
            f"(importing it failed: {error})"
        ) from error
    return xllamacpp
