"""The parent's end of one process's socket and log pipe: frames with deadlines, and the last words of the log.

The log is read whenever a frame is waited for, so that a process that prints much never blocks on a full pipe
and no thread is needed. It must be used by one thread at a time.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque

from harnesslab.subproc.frames import FRAME_LIMIT, HEAD, length

LOG_LIMIT = 16_000
"""Bytes of the log that are kept."""
CHUNK = 1 << 18


class Late(Exception):
    """The deadline passed."""


class Closed(Exception):
    """The other side closed the socket: it has ended, or is ending."""


class Channel:
    """Owns the socket and the log's file descriptor. Deadlines (``until``) are readings of ``time.monotonic``."""

    def __init__(self, connection: socket.socket, log: int, limit: int = FRAME_LIMIT):
        self._socket, self._log, self._limit = connection, log, limit
        self._socket.setblocking(False)
        os.set_blocking(log, False)
        self._words: deque[bytes] = deque()
        self._kept = 0
        self._poll = select.poll()
        self._poll.register(log, select.POLLIN)

    def send(self, frame: bytes, until: float) -> None:
        """Send a frame. Raises Late and Closed."""
        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, until)
            except OSError as error:
                raise Closed from error

    def receive(self, until: float) -> bytes:
        """The body of the next frame. Raises Late, Closed, and FrameError where it is too long."""
        return self._exactly(length(self._exactly(HEAD.size, until), self._limit), until)

    def silent(self) -> bool:
        """Is the other side there, with nothing to read? False where it has ended or speaks unasked."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def log(self) -> str:
        """The last that the process printed."""
        self._read_log()
        return b"".join(self._words)[-LOG_LIMIT:].decode("utf-8", "replace")

    def close(self) -> None:
        """Close both. Safe to call twice."""
        self._socket.close()
        if self._log >= 0:
            os.close(self._log)
            self._log = -1

    def _exactly(self, size: int, until: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._socket.recv(min(size - len(parts), CHUNK))
            except BlockingIOError:
                self._wait(select.POLLIN, until)
                continue
            except OSError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)

    def _wait(self, event: int, until: float) -> None:
        """Until the socket can be read (or written), reading the log meanwhile. Raises Late."""
        own = self._socket.fileno()
        self._poll.register(own, event)
        try:
            while True:
                left = until - time.monotonic()
                if left <= 0:
                    raise Late
                ready = dict(self._poll.poll(left * 1000 + 1))
                if self._log in ready and not self._read_log():
                    self._poll.unregister(self._log)
                if own in ready:
                    return
        finally:
            self._poll.unregister(own)

    def _read_log(self) -> bool:
        """Take what is in the log pipe; false once it has ended."""
        while self._log >= 0:
            try:
                part = os.read(self._log, CHUNK)
            except BlockingIOError:
                return True
            if not part:
                return False
            self._words.append(part)
            self._kept += len(part)
            while self._kept - len(self._words[0]) >= LOG_LIMIT:
                self._kept -= len(self._words.popleft())
        return False
