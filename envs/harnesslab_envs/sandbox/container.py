"""A machine for commands of an agent in a container of an image: the same interface as the one on bubblewrap.

The container has no network by default, no privileges beyond those of :data:`CAPABILITIES`, and bounds for memory,
processors and processes. Its first process reads from a pipe that this process holds: when this process ends, however
it does, so does the pipe, the container, and with it (``--rm``) all that it has written.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import select
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.sandbox.engine import LABEL, Engine, EngineError, owner
from harnesslab_envs.sandbox.protocol import CAPABILITIES, READ, SPARE_S, Done, Limits, MachineGone, runnable
from harnesslab_envs.sandbox.rules import PUT_TIME, STATE_FD, WRAPPER, Output, State, watch

START_S = 60.0
END_S = 15.0
SIZE_S = 3.0
"""Between two looks at how much a running command has written to the container's disk."""
STATE_SIZE = 2 << 20
EXEC_END_S = 0.3
"""How long the engine's client gets to end once the command has: it waits for background processes else."""

# The first process. What it is to kill comes by its input, as no command can keep it from working: it needs no fork.
FIRST = 'while read -r target token; do kill -9 -- "$target" 2>/dev/null; echo "$token"; done'
# Runs WRAPPER and says on both streams when it has ended, as background processes may hold them for longer. These would
# be killed by their next line of output once the streams are closed, so something stays that holds them open.
RUN = (
    f'exec 251>&1 {STATE_FD}>&2 2>/dev/null; printf "%s\\0" $$ >&{STATE_FD}; ulimit -c 0; ulimit -f "$5"; '
    '[ -z "$3" ] || cd -- "$3" || cd /; unset OLDPWD SHLVL; '
    '/bin/bash --noprofile --norc -c "$1" bash "$2" >&251 2>&251 251>&-; code=$?; '
    f'printf "%s" "$4" >&251; printf "%s\\0%s" "$code" "$4" >&{STATE_FD}; '
    "for file in /proc/[0-9]*/fd/*; do case $file in /proc/$$/*) continue ;; esac; "
    f'if [ "$file" -ef /proc/$$/fd/251 ] || [ "$file" -ef /proc/$$/fd/{STATE_FD} ]; then exec sleep 2147483; fi; '
    'done; exit "$code"'
)


class Container:
    """A running container of ``image``, which needs bash and coreutils. See :class:`harnesslab_envs.sandbox.Confined`.

    Commands run as the image's user, those without ``keep_state`` as root. ``network``: the engine's default network
    in place of none. ``environ`` and ``cwd`` are added to the image's. Raises EnvironmentFault where the image cannot be run.
    """

    def __init__(
        self,
        engine: Engine,
        image: str,
        limits: Limits | None = None,
        *,
        network: bool = False,
        cpus: float = 1,
        environ: Mapping[str, str] | None = None,
        cwd: str = "",
    ):
        self.limits = limits or Limits()
        self.user = ""
        self._engine, self._name = engine, f"harnesslab-{secrets.token_hex(8)}"
        self._state: State | None = None
        self._process: subprocess.Popen[bytes] | None = None
        with tempfile.TemporaryFile() as log:
            self._process = engine.start(
                *("run", "--interactive", "--rm", "--name", self._name, "--label", f"{LABEL}={owner()}"),
                *_confinement(self.limits, network, cpus),
                *(word for name, value in (environ or {}).items() for word in ("--env", f"{name}={value}")),
                *(("--workdir", cwd) if cwd else ()),
                *("--entrypoint", "/bin/bash", image, "-c", FIRST),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log.fileno(),
            )
            try:
                self._kill("nothing", START_S)
                self._state = State("", {})
                self.run("true")
            except MachineGone as error:
                self.close()
                log.seek(0)
                said = log.read(2_000).decode("utf-8", "replace").strip()[-400:]
                raise EnvironmentFault(f"the image {image} cannot be run: {said or error}") from error
            except BaseException:
                self.close()
                raise

    def run(
        self, script: str, *, seconds: float | None = None, keep_state: bool = True, user: str | None = None
    ) -> Done:
        """See :meth:`harnesslab_envs.sandbox.Confined.run`."""
        script, refused = runnable(script)
        if refused:
            return refused
        mark = secrets.token_hex(16)
        state = self._state if keep_state else None
        user = user if user is not None else self.user if keep_state else "0"
        words = ["--user", user] if user else []
        words.append(self._name)
        if state and state.environ:
            words += ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in state.environ.items())]
        words += ["/bin/bash", "--noprofile", "--norc", "-c", RUN, "bash", WRAPPER, script]
        words += [state.cwd if state else "", mark, str(self.limits.disk_mb << 10)]
        try:
            client = self._engine.start("exec", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as error:
            return Done(f"bash: {error.strerror}\n", 126)
        with client:
            try:
                return self._follow(client, mark, self.limits.seconds if seconds is None else seconds, state)
            finally:
                client.kill()

    def put(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """See :meth:`harnesslab_envs.sandbox.Confined.put`."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path, content in files.items():
                entry = tarfile.TarInfo(path.lstrip("/"))
                entry.size, entry.mode, entry.mtime = len(content), mode, PUT_TIME
                archive.addfile(entry, io.BytesIO(content))
        try:
            self._engine.call("cp", "-", f"{self._name}:/", data=packed.getvalue())
        except EngineError as error:
            self._raise_if_gone()
            raise EnvironmentFault(f"the container: {error}") from error

    def read(self, path: str, limit: int = READ) -> bytes | None:
        """See :meth:`harnesslab_envs.sandbox.Confined.read`."""
        client = self._engine.start(
            "cp", f"{self._name}:{path}", "-", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        with client:
            assert client.stdout
            try:
                with tarfile.open(fileobj=client.stdout, mode="r|") as archive:
                    entry = archive.next()
                    file = archive.extractfile(entry) if entry is not None and entry.isfile() else None
                    content = b""
                    while file is not None and (part := file.read(1 << 20)):
                        content = (content + part)[-limit:]
            except tarfile.TarError:
                file = None
            finally:
                client.kill()
        return None if file is None else content

    def sweep(self) -> None:
        """See :meth:`harnesslab_envs.sandbox.Confined.sweep`."""
        self._kill("-1", SPARE_S)

    def close(self) -> None:
        """End the container; it is gone when this returns. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin and process.stdout
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(EngineError):
                self._engine.call("rm", "--force", "--volumes", self._name)
            process.kill()
            process.wait()
        process.stdout.close()

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _follow(self, client: subprocess.Popen[bytes], mark: str, seconds: float, state: State | None) -> Done:
        assert client.stdout and client.stderr
        said, left = Marked(self.limits.output, mark), Marked(STATE_SIZE, mark)
        streams: dict[int, Output] = {client.stdout.fileno(): said, client.stderr.fileno(): left}
        for fd in streams:
            os.set_blocking(fd, False)
        looked = time.monotonic()

        def broken() -> str:
            nonlocal looked
            if time.monotonic() - looked < SIZE_S:
                return ""
            written, looked = self._written(), time.monotonic()
            return "disk" if written > self.limits.disk_mb << 20 else ""

        def ended() -> bool:
            return client.poll() is not None or (said.ended and left.ended)

        stopped = watch(ended, streams, time.monotonic() + seconds, broken)
        if stopped:
            # Before the command's own process has said its number, there is no telling what belongs to it.
            pid = left.content().partition(b"\0")[0]
            self._kill(f"-{pid.decode()}" if pid.isdigit() and stopped != "disk" else "-1", SPARE_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(EXEC_END_S)
        client.kill()
        for fd, stream in streams.items():
            stream.drain(fd)
        pid, _, rest = left.content().partition(b"\0")
        if stopped:
            return Done(said.text(), -9, stopped)
        if not pid.isdigit():
            self._raise_if_gone()
            return Done(f"bash: {left.text().strip()}\n", client.wait())
        kept, _, code = rest.removesuffix(b"\0").rpartition(b"\0")
        if not left.ended or not code.isdigit():
            self._raise_if_gone()
            return Done(said.text(), client.wait())
        if state:
            state.remember(kept + b"\0")
        return Done(said.text(), int(code))

    def _kill(self, target: str, deadline: float) -> None:
        """Have the first process kill a process (a group, by its negative number; all but itself, by -1)."""
        if self._process is None:
            raise MachineGone("the machine is closed")
        assert self._process.stdin and self._process.stdout
        token = secrets.token_hex(16)
        end = time.monotonic() + deadline
        answer = b""
        try:
            self._process.stdin.write(f"{target} {token}\n".encode())
            self._process.stdin.flush()
        except OSError as error:
            raise MachineGone("the machine has ended") from error
        fd = self._process.stdout.fileno()
        while token.encode() not in answer:
            if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
                raise MachineGone("the machine no longer answers")
            part = os.read(fd, 1 << 16)
            if not part:
                raise MachineGone("the machine has ended")
            answer = (answer + part)[-(1 << 16) :]

    def _written(self) -> int:
        """Bytes on the container's own layer."""
        try:
            return int(self._engine.call("container", "inspect", "--size", "--format", "{{.SizeRw}}", self._name))
        except (EngineError, ValueError):
            return 0

    def _raise_if_gone(self) -> None:
        try:
            self._kill("nothing", END_S)
        except MachineGone:
            self.close()
            raise


class Marked(Output):
    """An output that ends with a mark; what comes behind that is no longer the command's."""

    def __init__(self, limit: int, mark: str):
        super().__init__(limit)
        self.ended = False
        self._mark, self._pending = mark.encode(), b""

    def add(self, part: bytes) -> None:
        """One more part; the last bytes wait, as they may be the begin of the mark."""
        if self.ended or not part:
            return
        content, found, _ = (self._pending + part).partition(self._mark)
        self.ended = bool(found)
        keep = 0 if found else min(len(content), len(self._mark) - 1)
        self._pending = content[len(content) - keep :]
        super().add(content[: len(content) - keep])

    def content(self) -> bytes:
        """The output without the mark."""
        pending, self._pending = self._pending, b""
        super().add(pending)
        return super().content()


def _confinement(limits: Limits, network: bool, cpus: float) -> list[str]:
    memory = f"{limits.memory_mb}m"
    words = ["--memory", memory, "--memory-swap", memory, "--cpus", f"{cpus:g}", "--pids-limit", str(limits.processes)]
    words += ["--cap-drop", "ALL", *(word for name in CAPABILITIES for word in ("--cap-add", name))]
    words += ["--security-opt", "no-new-privileges", "--hostname", "machine", "--stop-signal", "SIGKILL"]
    return words if network else [*words, "--network", "none"]
