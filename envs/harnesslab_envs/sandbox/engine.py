"""A container engine by its command line: Docker's, or Podman's, which takes the same words. Each call has a deadline.

The command line, and no library: it is there wherever an engine is, it knows contexts, remote engines and log-ins, and
it needs no package in the environment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from harnesslab.errors import EnvironmentUnavailable

PROGRAMS = ("docker", "podman")
VARIABLE = "HARNESSLAB_DOCKER"
"""Names one program to use in place of the first of these that answers."""
ANSWER_S = 15.0
CALL_S = 60.0
LABEL = "harnesslab.owner"
"""Of each container: the host and the process that it was made for."""
IMAGE_LABEL = "harnesslab.image"
SAID = 600
"""Characters of the engine's last words that an error repeats."""


class EngineError(Exception):
    """The engine refused, or did not answer in time; says so in its own words."""


class Engine:
    """One engine that has answered."""

    def __init__(self, program: str):
        self.program = program

    def call(self, *words: str, data: bytes = b"", seconds: float = CALL_S) -> str:
        """What the engine prints; ``data`` is its input. Raises EngineError."""
        with tempfile.TemporaryFile() as said:
            process = self.start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said.fileno())
            try:
                printed, _ = process.communicate(data, timeout=seconds)
            except subprocess.TimeoutExpired as error:
                raise EngineError(f"'{self.program} {words[0]}' did not end within {seconds:g} s") from error
            finally:
                process.kill()
                process.wait()
            said.seek(max(0, said.seek(0, os.SEEK_END) - SAID))
            last_words = said.read().decode("utf-8", "replace").strip()
        if process.returncode:
            raise EngineError(last_words or f"'{self.program} {words[0]}' ended with {process.returncode}")
        return printed.decode("utf-8", "replace")

    def start(self, *words: str, stdin: int = subprocess.DEVNULL, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        """Start a call in a session of its own: an interrupt of the notebook is not one of the engine's client."""
        return subprocess.Popen(
            [self.program, *words],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=os.environ | {"HOME": _home()},
            start_new_session=True,
        )

    def build(
        self,
        tag: str,
        context: Mapping[str, tuple[bytes, int]],
        *,
        network: bool,
        seconds: float,
        args: Mapping[str, str] | None = None,
    ) -> None:
        """Build an image from a folder with a Dockerfile (contents and modes by relative path), where there is none
        of that name yet. ``args`` are build arguments. Raises EngineError."""
        with contextlib.suppress(EngineError):
            self.call("image", "inspect", "--format", "{{.Id}}", tag)
            return
        with tempfile.TemporaryDirectory(prefix="harnesslab-image-") as folder:
            for name, (content, mode) in context.items():
                file = Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(mode)
            nets = () if network else ("--network", "none")
            given = [word for name, value in (args or {}).items() for word in ("--build-arg", f"{name}={value}")]
            self.call(
                "build",
                "--quiet",
                "--force-rm",
                "--label",
                f"{IMAGE_LABEL}=1",
                *nets,
                *given,
                "--tag",
                tag,
                folder,
                seconds=seconds,
            )

    def reap(self) -> int:
        """Remove containers that processes of this host left behind when they ended; returns how many."""
        removed = 0
        for container in self.call("ps", "--all", "--quiet", "--filter", f"label={LABEL}").split():
            # One that is gone by now is an error of the engine, and what was wanted.
            with contextlib.suppress(EngineError):
                label = self.call("inspect", "--format", f'{{{{index .Config.Labels "{LABEL}"}}}}', container)
                host, _, process = label.strip().rpartition("/")
                pid, _, started = process.partition(":")
                if host == _host() and pid.isdecimal() and _started(int(pid)) != started:
                    self.call("rm", "--force", "--volumes", container)
                    removed += 1
        return removed


def find_engine() -> Engine:
    """The engine that answers here. Raises EnvironmentUnavailable with one sentence where none does.

    What containers of ended processes were left is removed when the engine is found.
    """
    chosen = os.environ.get(VARIABLE)
    return _find((chosen,) if chosen else PROGRAMS)


def owner() -> str:
    """The value of :data:`LABEL` for this process."""
    return f"{_host()}/{os.getpid()}:{_started(os.getpid())}"


# An error is not kept: an engine that is started later is found.
@lru_cache(maxsize=4)
def _find(programs: tuple[str, ...]) -> Engine:
    reasons = []
    for program in programs:
        if shutil.which(program) is None:
            reasons.append(f"{program} is not installed")
            continue
        engine = Engine(program)
        try:
            engine.call("info", seconds=ANSWER_S)
            engine.reap()
        except (EngineError, OSError) as error:
            reasons.append(f"{program}: {' '.join(str(error).split())[-200:]}")
        else:
            return engine
    raise EnvironmentUnavailable(
        f"No container engine answers ({'; '.join(reasons)}): start Docker, or install it (https://docs.docker.com/engine/install)."
    )


def _home() -> str:
    """Where the user's settings of the engine are, also in an environment process, whose HOME is a private folder."""
    if sys.platform == "win32":
        return str(Path.home())
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return str(Path.home())


def _host() -> str:
    """This host, as far as process numbers go: containers that share an engine have namespaces of their own."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = "pid"
    return f"{socket.gethostname()}/{space}"


def _started(pid: int) -> str:
    """When a process started, in words that only compare; empty where there is none of that number."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
        except (FileNotFoundError, ProcessLookupError):
            return ""
    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip()
