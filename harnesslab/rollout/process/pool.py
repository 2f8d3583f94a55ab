"""Warm processes of one environment, used again and again."""

from __future__ import annotations

import os
import threading
import time

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.process.child import Child, Launch

IDLE_S = 600.0
"""Seconds that a process may wait for work before it is ended."""


class Pool:
    """Takes and gives processes; thread-safe. A process is used by one caller at a time."""

    def __init__(self, launch: Launch, idle_s: float = IDLE_S):
        self.launch = launch
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Child]] = []
        self._timer: threading.Timer | None = None
        self._owner = os.getpid()
        self._closed = False

    def take(self) -> Child:
        """A process that waits for work: a warm one, else a new one. Raises what :class:`Child` raises."""
        while (child := self._pop()) is not None:
            if child.ready():
                return child
            child.kill()
        return Child(self.launch)

    def give(self, child: Child, *, usable: bool = True) -> None:
        """Bring a process back. It is kept warm, or killed where it broke."""
        with self._lock:
            keep = usable and not self._closed and self._owner == os.getpid()
            if keep:
                self._idle.append((time.monotonic(), child))
                self._watch()
        if not keep:
            child.kill()

    def idle(self) -> int:
        """How many processes wait for work."""
        with self._lock:
            return len(self._idle)

    def close(self) -> None:
        """End the processes that wait; those in use end when they are given back. Safe to call twice."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for _, child in idle:
            child.kill()

    def _pop(self) -> Child | None:
        with self._lock:
            if self._owner != os.getpid():
                # After a fork the processes belong to the one that started them.
                self._owner, self._idle = os.getpid(), []
            if self._closed:
                raise EnvironmentFault(f"the environment '{self.launch.name}' was closed")
            return self._idle.pop()[1] if self._idle else None

    def _watch(self) -> None:
        """See to it that idle processes end in time. Called with the lock held."""
        if self._timer is None and self._idle:
            self._timer = threading.Timer(self._idle_s, self._trim)
            self._timer.daemon = True
            self._timer.start()

    def _trim(self) -> None:
        limit = time.monotonic() - self._idle_s
        with self._lock:
            self._timer = None
            old = [child for since, child in self._idle if since <= limit]
            self._idle = [(since, child) for since, child in self._idle if since > limit]
            if not self._closed:
                self._watch()
        for child in old:
            child.kill()
