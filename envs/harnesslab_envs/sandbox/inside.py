"""What runs first inside the machine: starts commands, watches over them, and answers over a socket (its stdin).

Standard library only; it and ``rules.py`` are all that the machine has of us. It ends when the socket closes, and the
machine with it. A command can kill it, which ends the machine; it cannot be traced (where it is guarded), and it runs
no code of the agent's.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import grp
import json
import os
import pwd
import resource
import signal
import socket
import stat
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

from harnesslab_envs.sandbox.rules import PUT_TIME, STATE_FD, TICK_S, WRAPPER, Output, State, watch

HEAD = struct.Struct(">I")
PR_SET_DUMPABLE = 4
ROOT = (None, "root", "/root")
"""Values of HOME and USER that another user does not keep."""
HELD = 64
"""Pipes of background processes that are kept open at once."""


class Supervisor:
    """The state between commands, and the limits."""

    def __init__(self, limits: dict[str, Any], cwd: str, environ: dict[str, str]):
        self.limits, self._state, self._start = limits, State(cwd, environ), State(cwd, dict(environ))
        self._held: list[int] = []

    def run(self, script: str, seconds: float, output: int, keep_state: bool, user: str) -> dict[str, Any]:
        """Run a bash script to its end, or until it breaks a limit.

        Without ``keep_state`` it neither sees nor changes where other commands have gone and what they exported.
        """
        state = os.memfd_create("state")
        read, write = os.pipe()
        os.set_blocking(read, False)
        try:
            process = self._popen(script, state, write, self._state if keep_state else self._start, user)
        except (OSError, subprocess.SubprocessError) as error:
            os.close(read)
            os.close(state)
            said = error.strerror if isinstance(error, OSError) else f"the user {user} cannot be taken here"
            return {"output": f"bash: {said}\n", "code": 126, "stopped": ""}
        finally:
            os.close(write)
        collected = Output(output)
        stopped = self._wait(process, read, collected, time.monotonic() + seconds)
        collected.drain(read)
        # A background process may still write there; a closed pipe would kill it.
        self._held.append(read)
        if len(self._held) > HELD:
            os.close(self._held.pop(0))
        if keep_state and not stopped:
            self._state.remember(os.pread(state, 1 << 20, 0))
        os.close(state)
        return {"output": collected.text(), "code": process.returncode, "stopped": stopped}

    def put(self, files: list[tuple[str, str, int]]) -> None:
        """Write files: (path, base64 of the content, mode)."""
        for path, content, mode in files:
            file = Path(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(base64.b64decode(content))
            file.chmod(mode)
            os.utime(path, (PUT_TIME, PUT_TIME))

    def read(self, path: str, limit: int) -> str | None:
        """The last ``limit`` bytes of a regular file as base64, None where there is none. Links are not followed."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return None
            start = max(0, status.st_size - limit)
            parts = bytearray()
            while len(parts) < limit and (part := os.pread(fd, limit - len(parts), start + len(parts))):
                parts += part
        finally:
            os.close(fd)
        return base64.b64encode(parts).decode("ascii")

    def state(self, cwd: str | None, environ: dict[str, str]) -> None:
        """Change the folder and the variables of the commands to come."""
        if cwd is not None:
            Path(cwd).mkdir(parents=True, exist_ok=True)
            self._state.cwd = self._start.cwd = cwd
        self._state.environ.update(environ)
        self._start.environ.update(environ)

    def sweep(self) -> None:
        """End all processes but this one."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        for fd in self._held:
            os.close(fd)
        self._held.clear()

    def _popen(self, script: str, state: int, write: int, start: State, user: str) -> subprocess.Popen[bytes]:
        as_user, home = identity(user)
        os.dup2(state, STATE_FD)
        try:
            return subprocess.Popen(
                ["/bin/bash", "--noprofile", "--norc", "-c", WRAPPER, "bash", script],
                stdin=subprocess.DEVNULL,
                stdout=write,
                stderr=write,
                cwd=start.cwd if Path(start.cwd).is_dir() else "/",
                env=start.environ | {key: value for key, value in home.items() if start.environ.get(key) in ROOT},
                pass_fds=(STATE_FD,),
                start_new_session=True,
                **as_user,
            )
        finally:
            os.close(STATE_FD)

    def _wait(self, process: subprocess.Popen[bytes], read: int, collected: Output, deadline: float) -> str:
        """Wait for the end; what stopped it, if something did: time, output, processes or memory."""
        reason = watch(lambda: process.poll() is not None, {read: collected}, deadline, self._broken)
        if reason in ("time", "output"):
            os.killpg(process.pid, signal.SIGKILL)
        elif reason:
            self.sweep_processes()
        process.wait()
        return reason

    def sweep_processes(self) -> None:
        """Kill everything, again and again while a fork bomb goes on."""
        while usage()[0]:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                return
            time.sleep(TICK_S)
            with_zombies_gone()

    def _broken(self) -> str:
        processes, pages = usage()
        if processes > self.limits["processes"]:
            return "processes"
        return "memory" if pages * resource.getpagesize() > self.limits["memory_mb"] << 20 else ""


def identity(user: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What Popen takes for ``user`` (``NAME``, ``UID``, ``NAME:GROUP``) and the variables that name it; nothing for root.

    Raises OSError where there is no such name. A number needs no entry in ``/etc/passwd``.
    """
    name, _, group = user.partition(":")
    if name in ("", "root", "0") and group in ("", "root", "0"):
        return {}, {}
    try:
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name or "root")
        uid, gid, groups = entry.pw_uid, entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)
        home = {"HOME": entry.pw_dir, "USER": entry.pw_name}
    except KeyError:
        if not name.isdigit():
            raise OSError(2, f"there is no user {name}") from None
        uid, gid, groups, home = int(name), 0, [0], {"HOME": "/"}
    if group:
        try:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
        except KeyError:
            raise OSError(2, f"there is no group {group}") from None
        groups = [gid]
    return {"user": uid, "group": gid, "extra_groups": groups}, home


def usage() -> tuple[int, int]:
    """(processes, resident pages) of all but the first process and this one."""
    processes = pages = 0
    own = {"1", str(os.getpid())}
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and place.name not in own:
            try:
                resident = int((place / "statm").read_text("ascii").split()[1])
            except (OSError, IndexError):
                continue
            processes += 1
            pages += resident
    return processes, pages


def with_zombies_gone() -> None:
    """Reap children that :mod:`subprocess` no longer waits for."""
    try:
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass


def main() -> None:
    """Serve until the socket closes."""
    channel = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    _send(channel, {"value": None})
    start = _receive(channel)
    if start is None:
        return
    if start["guarded"]:
        # Processes of the same user could read and change this one's memory else.
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    limits = start["limits"]
    for what, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, limits["memory_mb"] << 20),
        (resource.RLIMIT_FSIZE, limits["disk_mb"] << 20),
        (resource.RLIMIT_NPROC, limits["processes"] + 8),
    ):
        hard = resource.getrlimit(what)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (bound, bound))
    os.umask(0o022)
    supervisor = Supervisor(limits, start["cwd"], start["environ"])
    while (request := _receive(channel)) is not None:
        what = request.pop("do")
        try:
            reply = {"value": getattr(supervisor, what)(**request)}
        except OSError as error:
            reply = {"error": f"{what}: {error.strerror} {error.filename or ''}"}
        _send(channel, reply)


def _send(channel: socket.socket, value: Any) -> None:
    body = json.dumps(value).encode()
    channel.sendall(HEAD.pack(len(body)) + body)


def _receive(channel: socket.socket) -> dict[str, Any] | None:
    with channel.makefile("rb", buffering=0) as stream:
        head = _exactly(stream, HEAD.size)
        body = _exactly(stream, HEAD.unpack(head)[0]) if head else b""
    return json.loads(body) if body else None


def _exactly(stream: Any, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = stream.read(size - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)
