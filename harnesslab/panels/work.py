"""Long work that a button starts: it runs on harnesslab's own loop, and a widget follows it."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from harnesslab.rollout.loop import loop
from harnesslab.rollout.progress import Bar

T = TypeVar("T")

TICK_SECONDS = 0.3


class Job(Generic[T]):
    """One coroutine on harnesslab's loop. The callbacks are called there, too: they may set widget traits, nothing else.

    ``done(result, error)`` is called once; the error of a cancelled job is a CancelledError.
    """

    def __init__(
        self,
        work: Coroutine[Any, Any, T],
        bar: Bar,
        tick: Callable[[Bar], None],
        done: Callable[[T | None, BaseException | None], None],
    ):
        self._bar, self._tick, self._done = bar, tick, done
        self._future: concurrent.futures.Future[None] = asyncio.run_coroutine_threadsafe(self._run(work), loop())

    def cancel(self) -> None:
        """Stop it; finished episodes are kept."""
        self._future.cancel()

    def wait(self, seconds: float | None = None) -> None:
        """Block until it is over and its callback has run, for scripts and tests."""
        concurrent.futures.wait([self._future], timeout=seconds)

    async def _run(self, work: Coroutine[Any, Any, T]) -> None:
        task = asyncio.ensure_future(work)
        result: T | None = None
        error: BaseException | None = None
        try:
            while not task.done():
                self._tick(self._bar)
                await asyncio.wait([task], timeout=TICK_SECONDS)
            result = task.result()
        except asyncio.CancelledError as stop:
            task.cancel()
            await asyncio.wait([task])
            error = stop
        except Exception as trouble:  # noqa: BLE001  (a click has no other way to report it)
            error = trouble
        finally:
            self._bar.close()
        self._done(result, error)
