"""One environment's process: started, asked, and killed with all that it started."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from harnesslab.errors import ConfigError, EnvironmentCrash, EnvironmentFault, EnvironmentUnavailable, NothingPlayable
from harnesslab.rollout.process import bootstrap
from harnesslab.rollout.process.wire import PROTOCOL, Start
from harnesslab.subproc.channel import Channel, Closed, Late
from harnesslab.subproc.frames import FrameError, decode, encode
from harnesslab.subproc.group import FIXED, GRACE_S, ending, kill_group, passed

WORDS_SHOWN = 500

AS_LONG_AS = {
    "version": "tasks",
    "instructions": "tasks",
    "constants": "tasks",
    "unplayable": "tasks",
    "policy_act": "policy",
}
"""Requests that have the deadline of another one."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that each request may take before the process is killed."""

    start: float = 120.0
    tasks: float = 120.0
    reset: float = 60.0
    step: float = 60.0
    close: float = 10.0
    policy: float = 120.0

    def of(self, what: str) -> float:
        """The deadline of a request."""
        return float(getattr(self, AS_LONG_AS.get(what, what)))


@dataclass(frozen=True, slots=True)
class Launch:
    """How a process is started. ``memory_mb`` bounds each process of the environment (0: no bound).

    ``environ`` is added to the scrubbed variables. ``home`` is the HOME that it sees; by default a folder that is
    removed with the process.
    """

    name: str
    python: str
    start: Start
    memory_mb: int = 2048
    deadlines: Deadlines = Deadlines()
    environ: Mapping[str, str] = field(default_factory=dict)
    home: Path | None = None


class Child:
    """A running process. ``hello`` is what it said at the start. One call at a time; ``kill`` from any thread."""

    def __init__(self, launch: Launch):
        """Start it and wait until it is ready. Raises EnvironmentUnavailable, EnvironmentFault and ConfigError."""
        if os.name != "posix":
            raise EnvironmentUnavailable("Environment processes need Linux or macOS; on Windows use WSL.")
        self.launch = launch
        self._turn = threading.Lock()
        self._dead = False
        self._owner = os.getpid()
        self._asked = 0
        self._awaited: int | None = None
        self._scratch = tempfile.mkdtemp(prefix="harnesslab-env-")
        self._spawn()
        try:
            self.hello: dict[str, Any] = self._greet()
        except BaseException:
            self.kill()
            raise

    def call(self, what: str, **arguments: Any) -> Any:
        """Ask and wait for the answer. Raises EnvironmentFault, EnvironmentUnavailable, ConfigError.

        A process that dies, is late or talks nonsense is killed and raises EnvironmentFault.
        """
        try:
            with self._turn:
                self._collect()
                number = self._send(what, arguments)
                reply = self._receive(what, number)
        finally:
            if self._dead:
                self._clean()
        error = reply.get("error")
        if error is not None:
            raise self._translated(what, error)
        return reply["value"]

    def post(self, what: str, **arguments: Any) -> None:
        """Ask without waiting; the answer is read, and forgotten, before the next call. Raises EnvironmentFault."""
        try:
            with self._turn:
                self._collect()
                self._awaited = self._send(what, arguments)
        finally:
            if self._dead:
                self._clean()

    def ready(self) -> bool:
        """Is it there, done with what was posted, and waiting for a request?"""
        try:
            with self._turn:
                self._collect()
                return not self._dead and self._process.poll() is None and self._channel.silent()
        except EnvironmentFault:
            return False
        finally:
            if self._dead:
                self._clean()

    @property
    def pid(self) -> int:
        """The process's id, which is its group's as well."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the process and all that it started. Safe to call twice, and from another thread than a call's."""
        if self._owner != os.getpid():
            # We are a fork of the one that started it, and only share its pipes.
            return
        self._dead = True
        kill_group(self._process)
        # A call in another thread meets the closed socket and cleans up itself.
        if self._turn.acquire(blocking=False):
            self._turn.release()
            self._clean()

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        life_read, self._life = os.pipe()
        log_read, log_write = os.pipe()
        command = [self.launch.python, "-s", "-P", bootstrap.__file__]
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(life_read), str(self.launch.memory_mb)],
                stdin=subprocess.DEVNULL,
                stdout=log_write,
                stderr=log_write,
                pass_fds=(theirs.fileno(), life_read),
                env=self._environ(),
                cwd=self._scratch,
                # A group of its own: it can be killed whole, and an Interrupt of the notebook does not reach it.
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            os.close(log_read)
            os.close(self._life)
            shutil.rmtree(self._scratch, ignore_errors=True)
            raise EnvironmentUnavailable(
                f"The environment '{self.launch.name}' cannot be started with {self.launch.python}: {error.strerror}. "
                f"Install it again: harnesslab envs install {self.launch.name}"
            ) from error
        finally:
            theirs.close()
            os.close(life_read)
            os.close(log_write)
        self._channel = Channel(ours, log_read)

    def _environ(self) -> dict[str, str]:
        places = {"HOME": str(self.launch.home or self._scratch), "TMPDIR": self._scratch}
        return {**passed(), **FIXED, **places, **self.launch.environ}

    def _greet(self) -> dict[str, Any]:
        hello = self.call("start", **asdict(self.launch.start))
        if (
            not isinstance(hello, dict)
            or hello.get("protocol") != PROTOCOL
            or not isinstance(hello.get("name"), str)
            or isinstance(hello.get("max_steps"), bool)
            or not isinstance(hello.get("max_steps"), int)
        ):
            raise EnvironmentFault(
                f"the process of '{self.launch.name}' introduced itself wrongly: it needs protocol {PROTOCOL}, "
                "a name (text) and max_steps (a whole number)"
            )
        return hello

    def _collect(self) -> None:
        """Read the answer to what was posted."""
        if self._awaited is not None:
            number, self._awaited = self._awaited, None
            if "error" in self._receive("close", number):
                self._fail("could not close its instance")

    def _send(self, what: str, arguments: dict[str, Any]) -> int:
        if self._dead:
            raise EnvironmentFault(f"the process of '{self.launch.name}' was killed")
        self._asked += 1
        try:
            frame = encode({"id": self._asked, "do": what, **arguments})
        except FrameError as error:
            raise EnvironmentFault(f"what was given to the environment's {what} cannot be sent: {error}") from None
        try:
            self._channel.send(frame, time.monotonic() + self.launch.deadlines.of(what))
        except Late:
            self._fail(f"did not read the request for {what} within {self.launch.deadlines.of(what):g} s")
        except Closed:
            self._fail(f"{self._ending()} before {what}")
        return self._asked

    def _receive(self, what: str, number: int) -> dict[str, Any]:
        try:
            reply = decode(self._channel.receive(time.monotonic() + self.launch.deadlines.of(what)))
        except Late:
            self._fail(f"did not answer {what} within {self.launch.deadlines.of(what):g} s and was killed")
        except Closed:
            self._fail(f"{self._ending()} during {what}")
        except FrameError as error:
            self._fail(f"answered {what} with something that is not a frame: {error}")
        if not isinstance(reply, dict) or reply.get("id") != number or ("value" in reply) == ("error" in reply):
            self._fail(f"answered {what} with something that was not asked for")
        checked: dict[str, Any] = reply
        return checked

    def _fail(self, reason: str) -> NoReturn:
        """Kill the process and say why, with its last words."""
        words = " ".join(self._channel.log().split())[-WORDS_SHOWN:]
        self._dead = True
        kill_group(self._process)
        raise EnvironmentFault(
            f"the process of '{self.launch.name}' {reason}" + (f"; its last words: {words}" if words else "")
        ) from None

    def _ending(self) -> str:
        """How it ended, in words."""
        if self._dead:
            return "was killed"
        return ending(self._process)

    def _translated(self, what: str, error: Any) -> Exception:
        kind, text = (error.get("kind"), str(error.get("text"))) if isinstance(error, dict) else ("fault", str(error))
        if kind == "unavailable":
            return EnvironmentUnavailable(text)
        if kind == "config":
            return ConfigError(text)
        if kind == "unplayable":
            reasons = error.get("unplayable")
            return NothingPlayable(text, reasons if isinstance(reasons, dict) else {})
        if kind == "told":
            return EnvironmentFault(text)
        if kind == "memory":
            text = f"ran out of its memory, {self.launch.memory_mb} MB"
        return EnvironmentCrash(f"the environment's {what} {text}")

    def _clean(self) -> None:
        """Reap the process and give back what we hold for it."""
        with self._turn:
            if self._life < 0:
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_S)
            self._channel.close()
            os.close(self._life)
            self._life = -1
        shutil.rmtree(self._scratch, ignore_errors=True)
