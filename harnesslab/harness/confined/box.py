"""The parent's side of one confined child: started ahead, asked with deadlines, and killed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from harnesslab.errors import ConfinementUnavailable, HarnessFileError, InterventionFault, WeakConfinement
from harnesslab.harness.confined import syscalls, walls
from harnesslab.harness.confined.feed import Feed
from harnesslab.harness.context import Context
from harnesslab.plaintext import one_line
from harnesslab.subproc.channel import Channel, Closed, Late
from harnesslab.subproc.frames import FrameError, decode, encode
from harnesslab.subproc.group import GRACE_S, ending, kill_group

WORDS_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a child may use: ``memory_mb`` and ``cpu_s`` in one episode, ``files_mb`` in its own folder, seconds to start,
    to load its file and to answer one hook, and bytes of one answer."""

    memory_mb: int = 512
    cpu_s: int = 120
    files_mb: int = 16
    start_s: float = 60.0
    load_s: float = 10.0
    hook_s: float = 5.0
    answer: int = 4 << 20


ALLOWED = Allowed()
"""What each child may use."""


@dataclass(frozen=True, slots=True)
class Code:
    """One file: the ``name`` of the intervention, its ``path`` in the harness, its text and the hooks that it defines."""

    name: str
    path: str
    source: str
    hooks: tuple[str, ...]


class Started:
    """A child that runs, and what is held for it."""

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel, scratch: str):
        self.process, self.channel = process, channel
        self.scratch = scratch  # its folder; bubblewrap makes its own
        self._owner = os.getpid()

    def end(self) -> None:
        """Kill it with all that it started, and give back what is held. Not by a fork, which only shares the pipes."""
        if self._owner != os.getpid():
            return
        kill_group(self.process)
        self.channel.close()
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            warnings.warn(f"process {self.process.pid} of an intervention does not end", ResourceWarning, stacklevel=2)
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)


class Box:
    """One file at work in a child of its own, which starts at once and is waited for at the first question.

    Its methods raise InterventionFault, with a cause, for all that the file does wrong, and ConfinementUnavailable where
    no child can be started. After a fault that leaves the child in an unknown state, it is killed.
    """

    def __init__(self, code: Code, allowed: Allowed | None = None):
        walls.check_possible()
        self.code, self.allowed = code, allowed or ALLOWED
        self._feed = Feed()
        self._asked = 0
        self._loaded = False
        self._over = False
        self._future = _nursery(os.getpid()).submit(_start, self.allowed)
        self._finalizer = weakref.finalize(self, _end, self._future)

    def ask(self, hook: str, context: Context, value: Any) -> tuple[Any, Any]:
        """What the file's function ``hook`` returns for the context and a value's JSON form, and its memory. Not checked yet."""
        if not self._loaded:
            self.load()
        frame = {"do": hook, "news": self._feed.news(context), "memory": context.memory, "value": value}
        reply = self._round(f"{hook} failed", frame, self.allowed.hook_s)
        if "error" in reply:
            error = reply["error"]
            lie = isinstance(error, dict) and error.get("kind") == "nonsense"
            raise self._fault(f"{hook} failed: {_words(error)[0]}", "nonsense" if lie else "intervention")
        return reply["value"], reply.get("memory")

    def load(self) -> None:
        """Load the file. Raises InterventionFault where that fails."""
        try:
            self._load()
        except HarnessFileError as error:
            self.close()
            raise InterventionFault(f"{self.code.name}: {error}", cause="intervention") from None

    def check(self) -> None:
        """Load the file and end. Raises HarnessFileError, with the line, where that fails."""
        try:
            self._load()
        except InterventionFault as fault:
            raise HarnessFileError(self.code.path, str(fault).removeprefix(f"{self.code.name}: ")) from None
        finally:
            self.close()

    def close(self) -> None:
        """Kill the child. Safe to call twice."""
        self._over = True
        self._finalizer()

    def _load(self) -> None:
        self._greet()
        code = self.code
        frame = {"path": code.path, "source": code.source, "hooks": list(code.hooks)}
        reply = self._round("cannot be loaded", frame, self.allowed.load_s)
        if "error" in reply:
            text, line = _words(reply["error"])
            if text.startswith("ModuleNotFoundError"):
                text += "; confined code has the standard library only"
            why = text if text.startswith("not valid Python") else f"fails when it is loaded: {text}"
            raise HarnessFileError(code.path, why, line=line)
        self._loaded = True

    def _greet(self) -> None:
        """Wait until the child is ready. Nothing of the file has run before, so what fails here is not its fault."""
        if self._over:
            raise self._fault("cannot be asked: its process was ended", "died")
        started = self._future.result()
        if started.scratch:
            _warn_once()
        try:
            first = decode(started.channel.receive(time.monotonic() + self.allowed.start_s))
        except (Late, Closed, FrameError):
            first = None
        if first != {"id": 0, "value": "ready"}:
            words = " ".join(started.channel.log().split())[-WORDS_SHOWN:]
            self.close()
            raise ConfinementUnavailable(
                "The confined process for Python interventions does not start" + (f": {words}" if words else "") + "."
            )

    def _round(self, what: str, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and receive its answer."""
        if self._over:
            raise self._fault(f"{what}: its process was ended", "died")
        channel = self._future.result().channel
        self._asked += 1
        until = time.monotonic() + seconds
        try:
            channel.send(encode({"id": self._asked, **request}), until)
            reply = decode(channel.receive(until))
        except Late:
            self._end(f"{what}: no answer within {seconds:g} s", "stalled")
        except Closed:
            self._end(f"{what}: its process {ending(self._future.result().process)}", "died")
        except FrameError as error:
            self._end(f"{what}: the answer cannot be read: {error}", "nonsense")
        asked_for = (
            isinstance(reply, dict) and reply.get("id") == self._asked and ("value" in reply) != ("error" in reply)
        )
        if not asked_for:
            self._end(f"{what}: it sent something that was not asked for", "nonsense")
        answered: dict[str, Any] = reply
        return answered

    def _end(self, message: str, cause: str) -> NoReturn:
        words = one_line(self._future.result().channel.log())[-WORDS_SHOWN:]
        self.close()
        raise self._fault(message + (f"; it printed: {words}" if words else ""), cause) from None

    def _fault(self, message: str, cause: str) -> InterventionFault:
        return InterventionFault(f"{self.code.name}: {message}", cause=cause)


def _words(error: Any) -> tuple[str, int | None]:
    """Text and line of an error that the child reports; nothing of it is trusted."""
    text, line = (error.get("text"), error.get("line")) if isinstance(error, dict) else (error, None)
    whole = isinstance(line, int) and not isinstance(line, bool) and 0 < line < 1_000_000
    return one_line(str(text))[:WORDS_SHOWN], line if whole else None


@lru_cache(maxsize=2)
def _nursery(pid: int) -> ThreadPoolExecutor:
    """One thread that starts all children: the kernel kills them with the thread that did, so it must outlive them."""
    return ThreadPoolExecutor(1, thread_name_prefix="harnesslab-box")


def _start(allowed: Allowed) -> Started:
    command = walls.bubblewrap(allowed.files_mb)
    scratch = ""
    if command is None:
        scratch = tempfile.mkdtemp(prefix="harnesslab-box-")
        command = tuple(walls.direct())
    ours, theirs = socket.socketpair()
    log_read, log_write = os.pipe()
    limits = (theirs.fileno(), allowed.answer, allowed.memory_mb, allowed.cpu_s, allowed.files_mb)
    try:
        process = subprocess.Popen(
            [*command, *map(str, limits), syscalls.program().hex()],
            stdin=subprocess.DEVNULL,
            stdout=log_write,
            stderr=log_write,
            pass_fds=(theirs.fileno(),),
            env=walls.environ(scratch or "/tmp"),
            cwd=scratch or "/",
            # A group of its own: it can be killed whole, and an Interrupt of the notebook does not reach it.
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        os.close(log_read)
        shutil.rmtree(scratch, ignore_errors=True)
        message = f"The confined process for Python interventions does not start: {error.strerror}."
        raise ConfinementUnavailable(message) from error
    finally:
        theirs.close()
        os.close(log_write)
    return Started(process, Channel(ours, log_read, allowed.answer), scratch)


def _end(future: Future[Started]) -> None:
    if future.cancel():
        return
    if future.exception() is None:
        future.result().end()


@lru_cache(maxsize=1)
def _warn_once() -> None:
    message = (
        "bubblewrap (bwrap) is not installed or does not work here, so Python interventions are only held by resource limits: "
        "they can read your files. Install it, or read the files first."
    )
    warnings.warn(message, WeakConfinement, stacklevel=2)
