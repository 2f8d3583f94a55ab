"""Our own event loop on its own thread, with a synchronous face.

Jupyter runs a loop in the main thread already, so ``asyncio.run`` fails there. All coroutines of
harnesslab run on one loop in one daemon thread instead; plain cells wait for them. An Interrupt (the stop
button, Ctrl-C) cancels the coroutine and waits until it has put its things in order.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

CLEANUP_SECONDS = 10.0
"""How long an interrupted coroutine may take to put its things in order."""
TICK_SECONDS = 0.2
"""How often a waiting caller may draw its progress."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def loop() -> asyncio.AbstractEventLoop:
    """The loop of harnesslab, started on first use (again after a fork)."""
    global _loop, _thread
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_loop.run_forever, name="harnesslab-loop", daemon=True)
            _thread.start()
        return _loop


def _abandon() -> None:
    """Leave the loop to a call that never comes back, such as a backbone that blocks; the next work gets a fresh one."""
    global _loop, _thread
    with _lock:
        _loop = _thread = None


def run_sync(work: Coroutine[Any, Any, T], tick: Callable[[], None] | None = None) -> T:
    """Run a coroutine on our loop and wait for it; ``tick`` is called in this thread meanwhile.

    Raises whatever it raises. KeyboardInterrupt cancels it, waits for its clean-up, and is raised again.
    """
    if threading.current_thread() is _thread:
        work.close()
        raise RuntimeError("run_sync was called from harnesslab's own loop; await the coroutine instead")
    settled = threading.Event()
    # The work begins when this thread is ready to be interrupted; else an Interrupt could come while it is handed over,
    # and leave it running with nobody to cancel it.
    admitted: concurrent.futures.Future[bool] = concurrent.futures.Future()
    future: concurrent.futures.Future[T] | None = None
    try:
        future = asyncio.run_coroutine_threadsafe(_guarded(work, settled, admitted), loop())
        admitted.set_result(True)
        while True:
            done, _ = concurrent.futures.wait([future], timeout=TICK_SECONDS if tick else None)
            if done:
                return future.result()
            if tick is not None:
                tick()
    except BaseException:
        if future is None or not admitted.done():
            admitted.set_result(False)
        elif not future.done():
            # An Interrupt, or a drawing that failed. Bounded: a call that ignores its cancellation must not
            # hold the notebook.
            future.cancel()
            if not settled.wait(CLEANUP_SECONDS):
                _abandon()
        raise


async def run_async(work: Coroutine[Any, Any, T], tick: Callable[[], None] | None = None) -> T:
    """The ``await`` twin of :func:`run_sync`, for cells that await: the caller's loop stays free."""
    future = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop()))
    while tick is not None and not future.done():
        await asyncio.wait([future], timeout=TICK_SECONDS)
        tick()
    return await future


async def _guarded(
    work: Coroutine[Any, Any, T], settled: threading.Event, admitted: concurrent.futures.Future[bool]
) -> T:
    try:
        if not await asyncio.wrap_future(admitted):
            raise asyncio.CancelledError
        return await work
    finally:
        work.close()  # does nothing unless it never began
        settled.set()
