"""The host's side: builds a machine, sends it commands and files, and takes it down."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable
from harnesslab_envs.sandbox.inside import HEAD
from harnesslab_envs.sandbox.protocol import CAPABILITIES, READ, SPARE_S, Done, Limits, MachineGone, runnable

PROGRAMS = ("bwrap", "unshare", "mount", "sh", "sed")
TOOLS = "/opt/harnesslab"
"""Where the machine has its supervisor, a Python and Python modules, read-only."""
BOOT = f"import sys; sys.path.insert(0, '{TOOLS}'); from harnesslab_envs.sandbox.inside import main; main()"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
START_S = 60.0
IDS = 65_536
_HERE = Path(__file__).parent
_LIBRARIES = ("LD_LIBRARY_PATH", f"{TOOLS}/python/lib")
"""A Python that was built with a shared library looks for it where it was installed, and then finds the system's."""

READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
"""Root of the host owns these, and so may root inside, which is the same user without its capabilities."""
HIDDEN = ("/proc/kcore", "/proc/keys", "/proc/timer_list")


class Machine:
    """A running machine. One call at a time; ``close`` it when done.

    ``modules``: Python modules of this process that Python inside can import, too. ``guarded``: commands cannot trace
    the supervisor; they then see a process of root whose folders in ``/proc`` they cannot read. Raises EnvironmentUnavailable
    where there is no bubblewrap, or the kernel does not let it work.
    """

    def __init__(
        self, limits: Limits | None = None, *, modules: Sequence[str] = (), cwd: str = "/app", guarded: bool = True
    ):
        if reason := missing():
            raise EnvironmentUnavailable(reason)
        self.limits = limits or Limits()
        self.user = ""
        self._base = tempfile.mkdtemp(prefix="harnesslab-machine-")
        self._process: subprocess.Popen[bytes] | None = None
        self._channel, inner = socket.socketpair()
        try:
            self._start(inner, list(modules), cwd, guarded)
        except BaseException:
            self.close()
            raise
        finally:
            inner.close()

    def run(
        self, script: str, *, seconds: float | None = None, keep_state: bool = True, user: str | None = None
    ) -> Done:
        """Run a bash script. It goes on in the folder and with the exported variables of the one before; without
        ``keep_state`` it has those that :meth:`set_state` has set, and leaves no trace in them. ``user`` is by default
        ``self.user`` with ``keep_state``, and root without.

        Raises MachineGone where the script ended the machine.
        """
        seconds = self.limits.seconds if seconds is None else seconds
        script, refused = runnable(script)
        if refused:
            return refused
        user = user if user is not None else self.user if keep_state else ""
        fields = {"script": script, "seconds": seconds, "output": self.limits.output, "keep_state": keep_state}
        fields["user"] = user
        return Done(**self._ask("run", seconds + SPARE_S, **fields))

    def put(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files by their absolute paths; folders are made."""
        packed = [(path, base64.b64encode(content).decode("ascii"), mode) for path, content in files.items()]
        self._ask("put", SPARE_S, files=packed)

    def read(self, path: str, limit: int = READ) -> bytes | None:
        """See :meth:`harnesslab_envs.sandbox.Confined.read`."""
        content = self._ask("read", SPARE_S, path=path, limit=limit)
        return None if content is None else base64.b64decode(content)

    def set_state(self, cwd: str | None = None, **environ: str) -> None:
        """The folder (made where it is missing) and more variables to start with, also for the commands to come."""
        self._ask("state", SPARE_S, cwd=cwd, environ=environ)

    def sweep(self) -> None:
        """End all that commands have left running."""
        self._ask("sweep", SPARE_S)

    def close(self) -> None:
        """Take the machine down with all that runs in it. Safe to call twice."""
        self._channel.close()
        process, self._process = self._process, None
        if process is not None:
            # Killing bubblewrap's outer process ends the first process inside, and that all others.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self._base, ignore_errors=True)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, inner: socket.socket, modules: list[str], cwd: str, guarded: bool) -> None:
        self._channel.settimeout(START_S)
        with tempfile.TemporaryFile() as log, tempfile.TemporaryFile() as arguments:
            # In a file, as everyone inside sees bubblewrap's command line.
            arguments.write("\0".join(["--bind", f"{self._base}/root", "/", *_bwrap_arguments(modules)]).encode())
            arguments.seek(0)
            script = 'echo >&0; read -r go; exec "$@"'
            self._process = process = subprocess.Popen(
                [
                    *("unshare", "--user", "--mount", "--propagation", "private", "sh", "-c", script, "sh"),
                    *("sh", str(_HERE / "setup.sh"), self._base, str(self.limits.disk_mb)),
                    *("--args", str(arguments.fileno()), python_inside(), "-I", "-S", "-c", BOOT),
                ],
                stdin=inner.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={"PATH": os.environ.get("PATH", PATH) + ":" + PATH},
                pass_fds=(arguments.fileno(),),
                start_new_session=True,
            )
            inner.close()
            try:
                self._receive_bytes(1)
                _map_users(process.pid)
                self._channel.sendall(b"\n")
                self._receive()
                self._send({"limits": asdict(self.limits), "cwd": cwd, "environ": first_environ(), "guarded": guarded})
            except (OSError, MachineGone) as error:
                log.seek(0)
                said = log.read(1_000).decode("utf-8", "replace").strip()
                raise EnvironmentUnavailable(f"No confined machine can be made here: {said or error}") from error

    def _ask(self, what: str, deadline: float, **fields: Any) -> Any:
        if self._process is None:
            raise MachineGone("the machine is closed")
        try:
            self._channel.settimeout(deadline)
            self._send({"do": what, **fields})
            reply = self._receive()
        except TimeoutError as error:
            raise MachineGone("the machine no longer answers") from error
        except OSError as error:
            raise MachineGone("the machine has ended") from error
        if "error" in reply:
            raise EnvironmentFault(f"the machine: {reply['error']}")
        return reply["value"]

    def _send(self, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self._channel.sendall(HEAD.pack(len(body)) + body)

    def _receive(self) -> dict[str, Any]:
        size = HEAD.unpack(self._receive_bytes(HEAD.size))[0]
        reply: dict[str, Any] = json.loads(self._receive_bytes(size))
        return reply

    def _receive_bytes(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._channel.recv(size - len(parts))
            if not part:
                raise MachineGone("the machine has ended")
            parts += part
        return bytes(parts)


@lru_cache(maxsize=1)
def missing() -> str:
    """Why no machine can be made here, and what to do; empty where one can."""
    if sys.platform != "linux":
        return "The confined machine needs Linux (bubblewrap, namespaces, overlayfs)."
    absent = [
        program for program in PROGRAMS if shutil.which(program, path=os.environ.get("PATH", "") + ":" + PATH) is None
    ]
    if "bwrap" in absent:
        return "bubblewrap is not installed. Get it with: apt-get install bubblewrap"
    return f"The confined machine needs {', '.join(absent)} (util-linux)." if absent else ""


@lru_cache(maxsize=1)
def usable() -> bool:
    """Whether a machine can be made here: where the programs are there, the kernel may refuse, still."""
    try:
        Machine().close()
    except EnvironmentUnavailable:
        return False
    return True


def _map_users(pid: int) -> None:
    """Root of the host keeps all its users inside (without power over the host); others are root alone."""
    proc = Path("/proc") / str(pid)
    if os.geteuid() == 0:
        users = groups = f"0 0 {IDS}"
    else:
        (proc / "setgroups").write_text("deny", "ascii")
        users, groups = f"0 {os.geteuid()} 1", f"0 {os.getegid()} 1"
    (proc / "uid_map").write_text(users, "ascii")
    (proc / "gid_map").write_text(groups, "ascii")


def _bwrap_arguments(modules: Sequence[str]) -> list[str]:
    words = ["--proc", "/proc", "--dev", "/dev", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--hostname", "machine", "--new-session", "--clearenv", "--chdir", "/"]
    words += [word for path in READ_ONLY if Path(path).exists() for word in ("--ro-bind", path, path)]
    words += [word for path in HIDDEN if Path(path).exists() for word in ("--ro-bind", "/dev/null", path)]
    words += ["--cap-drop", "ALL", *(word for name in CAPABILITIES for word in ("--cap-add", f"CAP_{name}"))]
    for name in ("inside.py", "rules.py"):
        words += ["--ro-bind", str(_HERE / name), f"{TOOLS}/harnesslab_envs/sandbox/{name}"]
    if not _python_is_inside():
        words += ["--ro-bind", sys.base_prefix, f"{TOOLS}/python", "--setenv", *_LIBRARIES]
        words += [
            word for name in ("python", "python3") for word in ("--symlink", python_inside(), f"/run/harnesslab/{name}")
        ]
    for module in modules:
        place = module_place(module)
        words += ["--ro-bind", str(place), f"{TOOLS}/modules/{place.name}"]
    return words


def first_environ() -> dict[str, str]:
    """The variables of the first command."""
    environ = {
        "PATH": PATH,
        "HOME": "/root",
        "USER": "root",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PYTHONPATH": f"{TOOLS}/modules",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    if not _python_is_inside():
        environ |= {"PATH": f"/run/harnesslab:{PATH}", _LIBRARIES[0]: _LIBRARIES[1]}
    return environ


def python_inside() -> str:
    """The Python that the machine has, by its path in there."""
    binary = f"bin/python{sys.version_info.major}.{sys.version_info.minor}"
    return f"{sys.base_prefix}/{binary}" if _python_is_inside() else f"{TOOLS}/python/{binary}"


def _python_is_inside() -> bool:
    return Path(sys.base_prefix).resolve().is_relative_to("/usr")


def module_place(module: str) -> Path:
    """The file or folder of a Python module of this process. Raises EnvironmentUnavailable where there is none."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise EnvironmentUnavailable(f"The Python module '{module}' is not installed here.")
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin
