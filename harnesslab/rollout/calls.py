"""Calls into environments that run in this process: one daemon thread, in order, each call with a deadline.

In-process environments may share state and may belong to the thread that made them (SQLite's connections do), so
all of them live on one thread, as if nothing ran beside them. A call that does not return cannot be stopped in
Python; its thread is left behind, and a fresh one takes the calls that wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from harnesslab.plaintext import in_words

GRACE_SECONDS = 1.0
"""How long a cancelled caller waits for its call to return before the thread is given up."""


class Overran(Exception):
    """A call did not return in time."""


class _Work:
    """One call, and the future of whoever waits for it."""

    def __init__(self, call: Callable[[], Any], future: asyncio.Future[Any]):
        self.call, self.future, self.loop = call, future, future.get_loop()
        self.started: float | None = None
        self.dropped = False

    def run(self) -> None:
        self.started = time.monotonic()
        result, error = None, None
        try:
            result = self.call()
        except BaseException as raised:  # noqa: BLE001 - handed on to the caller; this thread must live on
            error = raised
        with contextlib.suppress(RuntimeError):  # the caller's loop was closed meanwhile
            self.loop.call_soon_threadsafe(self._settle, result, error)

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            self.future.set_exception(error)
        else:
            # What would end a loop or a generator ends nothing here.
            self.future.set_exception(RuntimeError(in_words(error)))


class Calls:
    """Runs calls one after the other. Safe to use from several threads and loops, and after a fork."""

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._queue: deque[_Work] = deque()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    async def run(self, call: Callable[[], Any], seconds: float) -> Any:
        """What ``call`` returns or raises. Raises Overran when it takes longer than ``seconds``, the queue not counted."""
        work = _Work(call, asyncio.get_running_loop().create_future())
        self._put(work)
        left = seconds
        try:
            while not (await asyncio.wait([work.future], timeout=left))[0]:
                started = work.started
                left = seconds if started is None else started + seconds - time.monotonic()
                if left <= 0:
                    self._abandon(work)
                    raise Overran
            return work.future.result()
        except asyncio.CancelledError:
            await self._leave(work)
            raise

    def _put(self, work: _Work) -> None:
        if self._pid != os.getpid():
            # A fork: neither the thread nor the state of the lock came along.
            self._ready, self._queue, self._thread, self._pid = threading.Condition(), deque(), None, os.getpid()
        with self._ready:
            self._queue.append(work)
            if self._thread is None or not self._thread.is_alive():
                self._start()
            self._ready.notify_all()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="harnesslab-env", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        me = threading.current_thread()
        while True:
            with self._ready:
                while self._thread is me and not self._queue:
                    self._ready.wait()
                if self._thread is not me:
                    return
                work = self._queue.popleft()
            if not work.dropped:
                work.run()

    def _abandon(self, work: _Work) -> None:
        """Leave the thread to the call that holds it, and start another one for the rest."""
        with self._ready:
            if not work.future.done():
                work.future.cancel()
                self._start()
                self._ready.notify_all()

    async def _leave(self, work: _Work) -> None:
        if work.started is None:
            work.dropped = True
            return
        done, _ = await asyncio.wait([work.future], timeout=GRACE_SECONDS)
        if not done:
            self._abandon(work)
        elif not work.future.cancelled():
            work.future.exception()  # nobody waits for it any more


CALLS = Calls()
"""Where all in-process environments live."""
