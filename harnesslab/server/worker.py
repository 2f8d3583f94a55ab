"""Blocking work in threads, with a deadline for the whole request and for every git command in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harnesslab.server.problems import Problem
from harnesslab.store import time_limit

DEADLINE_S = 45.0
"""Long enough to index tens of thousands of candidates the first time, on a slow machine."""

THREADS = 3

_T = TypeVar("_T")


class Worker:
    """A few threads of its own: a slow lab must not take the threads that serve Jupyter's files."""

    def __init__(self, deadline: float = DEADLINE_S):
        self.deadline = deadline
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="harnesslab")

    async def run(self, work: Callable[[], _T]) -> _T:
        """The result of `work`; `Problem` once the deadline has passed, waiting for a free thread included."""
        end = asyncio.get_running_loop().time() + self.deadline
        task = asyncio.get_running_loop().run_in_executor(self._pool, self._limited, work, end)
        try:
            # A little later than git's own limit, so that the sentence names the command where there is one.
            return await asyncio.wait_for(task, self.deadline + 1.0)
        except TimeoutError:
            raise Problem("deadline", f"The lab did not answer within {self.deadline:g} s; try again.") from None

    def _limited(self, work: Callable[[], _T], end: float) -> _T:
        # `end` is on the loop's clock, which is `time.monotonic`, as is that of `time_limit`.
        with time_limit(end):
            return work()

    def close(self) -> None:
        """Stop; what still runs is ended by its deadline."""
        self._pool.shutdown(wait=False, cancel_futures=True)
