"""Backbones of a user's own, asked on an event loop beside the one that plays.

A ``complete()`` that blocks instead of awaiting would stop every episode, and no deadline could end it. On a loop of its
own it stops only its like. A call that is given up and still blocks keeps its thread; a fresh loop takes the next calls.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from harnesslab.llm.types import Completion, MinimalBackbone, Request

T = TypeVar("T")

GRACE_SECONDS = 1.0
"""How long a loop may take to answer before it counts as blocked."""


async def ask(backbone: MinimalBackbone, request: Request, repeat: int) -> Completion:
    """The backbone's reply; raises what it raises. Can be cancelled even where the backbone blocks."""
    if any(base.__module__ == "harnesslab.llm.chat" for base in type(backbone).__mro__) or type(
        backbone
    ).__module__.startswith("harnesslab."):
        return await backbone.complete(request, repeat=repeat)
    return await elsewhere(_call(backbone, request, repeat))


async def elsewhere(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine of a user's own returns, run on the loop beside this one; raises what it raises."""
    loop = _SIDE.loop()
    asked = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return await asyncio.wrap_future(asked)
    except asyncio.CancelledError:
        asked.cancel()
        answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))
        if not (await asyncio.wait([answer], timeout=GRACE_SECONDS))[0]:
            answer.cancel()
            _SIDE.give_up(loop)
        raise


async def _call(backbone: MinimalBackbone, request: Request, repeat: int) -> Completion:
    try:
        return await backbone.complete(request, repeat=repeat)
    except SystemExit as error:  # it would end the loop, and with it everyone's calls
        raise RuntimeError(f"SystemExit: {error}") from error


class _Side:
    """The loop in use, on a daemon thread of its own. Safe to use from several threads, and after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = os.getpid()

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._pid != os.getpid():
            # A fork: the thread did not come along, and the lock may be held for ever.
            self._lock, self._loop, self._pid = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="harnesslab-backbone", daemon=True).start()
            return self._loop

    def give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._loop is loop:
                self._loop = None


_SIDE = _Side()
