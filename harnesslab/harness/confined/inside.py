"""What runs in the child: gives up its rights, loads the one file that it is sent, and answers questions to it.

Run as a script, ``python inside.py FRAMES SOCKET MEMORY_MB CPU_S FILES_MB FILTER``; it imports the standard library
and ``frames.py`` only. Nothing here protects itself from the code that it loads: all that this code can reach is the
socket, and whatever comes through it is checked on the other side.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
import traceback
from typing import Any

TEXT = 500
"""Characters of an error that are reported."""
OPEN_FILES = 64
_SET_PDEATHSIG, _SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 1, 38, 22, 2
_SIGKILL = 9


class Link:
    """The socket, in frames."""

    def __init__(self, frames: Any, fd: int, limit: int):
        self._frames, self._fd, self._limit = frames, fd, limit

    def receive(self) -> Any:
        """The next request. Raises EOFError once the parent is gone."""
        return self._frames.decode(self._exactly(self._frames.length(self._exactly(self._frames.HEAD.size))))

    def send(self, value: Any) -> None:
        """Send an answer. Raises FrameError where it is not JSON, or too long."""
        rest = memoryview(self._frames.encode(value, self._limit))
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = os.read(self._fd, min(size - len(parts), 1 << 18))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)


class NotPython(Exception):
    """The file does not compile; its arguments are why, and the line."""


class Mirror:
    """The context as the agent has seen it, put together from what is new."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._history: list[Any] = []

    def update(self, news: dict[str, Any]) -> None:
        """Take what :class:`harnesslab.harness.confined.feed.Feed` has sent."""
        self._fields.update(news["changed"])
        del self._history[news["kept"] :]
        self._history += news["turns"]

    def context(self) -> dict[str, Any]:
        """The JSON form of a Context."""
        return {**self._fields, "history": list(self._history)}


def give_up(memory_mb: int, cpu_s: int, files_mb: int, program: bytes) -> None:
    """Set the limits and, on Linux, refuse the system calls of ``program``; neither can be taken back."""
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: memory_mb << 20,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: files_mb << 20,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        # Of a user other than root, this also counts threads.
        resource.RLIMIT_NPROC: 0,
    }
    for limit, value in limits.items():
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):
            # macOS has no bound on addresses; a bound that is already lower stays.
            continue
    if program:
        _refuse(program)


def _refuse(program: bytes) -> None:
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    filled = Program(len(program) // 8, program)
    if libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(filled), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel does not take the filter of system calls")


def load(path: str, source: str, hooks: list[str]) -> dict[str, Any]:
    """Run the file; its functions by hook. Raises what it raises, and LookupError for a hook that it does not define."""
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotPython(f"not valid Python: {getattr(error, 'msg', error)}", getattr(error, "lineno", None)) from None
    space: dict[str, Any] = {"__name__": "intervention"}
    exec(code, space)
    for hook in hooks:
        if not callable(space.get(hook)):
            raise LookupError(f"{hook} is not a function once the file has run")
    return {hook: space[hook] for hook in hooks}


def report(error: BaseException, path: str) -> dict[str, Any]:
    """An error in words, with the line of the file in which it came up."""
    if isinstance(error, NotPython):
        return {"text": error.args[0][:TEXT], "line": error.args[1]}
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001 - its text is code of the file's, too
        text = type(error).__name__
    if type(error).__name__ == "FrameError":
        return {"text": str(error)[:TEXT], "line": None, "kind": "nonsense"}
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return {"text": text[:TEXT], "line": lines[-1] if lines else None}


def answer(link: Link, number: Any, path: str, work: Any, context: dict[str, Any]) -> bool:
    """Send what ``work`` returns, with the memory that it left in the context, or what it raised; whether that went well."""
    try:
        link.send({"id": number, "value": work(), "memory": context.get("memory")})
    except EOFError:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the file raises is the answer
        link.send({"id": number, "error": report(error, path)})
        return False
    return True


def serve(link: Link) -> None:
    """Answer until the socket closes, or the file cannot be loaded."""
    link.send({"id": 0, "value": "ready"})
    first = link.receive()
    path = first["path"]
    functions: dict[str, Any] = {}
    mirror = Mirror()
    if not answer(link, first["id"], path, lambda: functions.update(load(path, first["source"], first["hooks"])), {}):
        return
    while True:
        request = link.receive()
        mirror.update(request["news"])
        context = {**mirror.context(), "memory": request["memory"]}
        function = functions[request["do"]]
        answer(link, request["id"], path, lambda f=function, c=context, v=request["value"]: f(c, v), context)


def main() -> None:
    """Close everything that is not ours, give up, serve."""
    frames_file, *words, filter_hex = sys.argv[1:]
    fd, limit, memory_mb, cpu_s, files_mb = map(int, words)
    spec = importlib.util.spec_from_file_location("frames", frames_file)
    assert spec is not None and spec.loader is not None
    frames = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(frames)
    os.closerange(3, fd)
    os.closerange(fd + 1, 1024)
    os.environ.clear()
    sys.argv[1:] = []
    json.dumps({})  # its encoder is loaded while it can be
    give_up(memory_mb, cpu_s, files_mb, bytes.fromhex(filter_hex))
    try:
        serve(Link(frames, fd, limit))
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
