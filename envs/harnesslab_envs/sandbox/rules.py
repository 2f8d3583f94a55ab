"""The rules for commands that hold on each machine: what outlives a command, what stops it, how much of it is kept.

Standard library only: the confined machine has this file, too, beside :mod:`harnesslab_envs.sandbox.inside`.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Mapping

TICK_S = 0.02
"""Between two looks at a running command."""
WATCH_S = 0.1
"""Between two counts of processes and memory."""
FLOOD = 8 << 20
"""Bytes of output after which a command is stopped."""
PUT_TIME = 1_700_000_000
"""When all files that are put were written, in seconds since 1970: a listing is the same in each episode."""

# The state that outlives a command is its folder and its exported variables; they come back through this file.
STATE_FD = 250
WRAPPER = (
    f'trap \'__code=$?; {{ printf "%s\\0" "$PWD"; /usr/bin/env -0; }} >&{STATE_FD} 2>/dev/null; exit $__code\' EXIT; '
    'eval "$1"'
)


class State:
    """The folder and the exported variables that one command leaves to the next."""

    def __init__(self, cwd: str, environ: dict[str, str]):
        self.cwd, self.environ = cwd, environ

    def remember(self, left: bytes) -> None:
        """Take what :data:`WRAPPER` has written when the command ended: the folder and ``NAME=value``, each with a NUL
        behind it. A command that ended without that leaves all as it was."""
        parts = left.split(b"\0")
        if len(parts) < 3:
            return
        self.cwd = os.fsdecode(parts[0])
        pairs = (os.fsdecode(part).partition("=") for part in parts[1:-1])
        self.environ = {name: value for name, _, value in pairs if name not in ("_", "SHLVL", "PWD", "OLDPWD")}


def watch(ended: Callable[[], bool], streams: Mapping[int, Output], deadline: float, broken: Callable[[], str]) -> str:
    """Collect what comes from ``streams`` until the command has ``ended``.

    Returns what is to stop it before: ``"time"`` (``deadline`` is one of :func:`time.monotonic`), ``"output"``, the
    reason that ``broken`` gives, or nothing.
    """
    watched = 0.0
    with selectors.DefaultSelector() as waiting:
        for fd in streams:
            waiting.register(fd, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select(TICK_S):
                if not streams[key.fd].take(key.fd):
                    waiting.unregister(key.fd)  # its output is closed, it still runs
            if ended():
                return ""
            now = time.monotonic()
            if now > deadline:
                return "time"
            if any(collected.size > FLOOD for collected in streams.values()):
                return "output"
            if now - watched > WATCH_S:
                watched = now
                if reason := broken():
                    return reason


class Output:
    """The first and the last bytes of an output, ``limit`` in all."""

    def __init__(self, limit: int):
        self.limit, self.size = limit, 0
        self._head, self._tail = bytearray(), bytearray()

    def take(self, fd: int) -> bool:
        """Read what is there; false where the other side has closed."""
        try:
            part = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        self.add(part)
        return bool(part)

    def add(self, part: bytes) -> None:
        """One more part of the output."""
        self.size += len(part)
        room = max(0, self.limit // 2 - len(self._head))
        self._head += part[:room]
        self._tail = (self._tail + part[room:])[-(self.limit // 2) :]

    def drain(self, fd: int) -> None:
        """Read what is left in the pipe, and not what a background process goes on to write."""
        end = self.size + (1 << 17)
        before = -1
        while before < self.size < end:
            before = self.size
            self.take(fd)

    def text(self) -> str:
        """The output; where something was left out, that is said."""
        return self.content().decode("utf-8", "replace")

    def content(self) -> bytes:
        """The same, as bytes."""
        left_out = self.size - len(self._head) - len(self._tail)
        middle = f"\n[... {left_out} bytes left out ...]\n".encode() if left_out else b""
        return bytes(self._head) + middle + bytes(self._tail)
