"""What all machines for an agent's commands have in common: their limits, how a command ended, what can be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

SPARE_S = 30.0
"""Beyond a command's own limit, before a machine is taken to hang."""
READ = 1 << 18
"""Bytes of a file that are read at most."""
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
"""What root inside may do over the machine's own files and processes; nothing that reaches the kernel's settings."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the whole machine, but for ``seconds`` and ``output`` (characters), which are a command's."""

    seconds: float = 30.0
    output: int = 8_000
    memory_mb: int = 1_024
    disk_mb: int = 256
    processes: int = 128


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended: what it wrote (both streams), its exit status (negative: a signal), and which limit stopped
    it: ``"time"``, ``"output"``, ``"memory"``, ``"processes"``, ``"disk"``, or empty."""

    output: str
    code: int
    stopped: str = ""


def shown(done: Done, seconds: float) -> str:
    """A command's end as an agent is shown it: its output, and its exit status where that is not 0."""
    reasons = {
        "time": f"[stopped: it ran for more than {seconds:g} s]",
        "output": "[stopped: it wrote too much]",
        "memory": "[stopped: too much memory; everything that ran was ended]",
        "processes": "[stopped: too many processes; everything that ran was ended]",
        "disk": "[stopped: its files are too large; everything that ran was ended]",
    }
    end = reasons.get(done.stopped) or (f"[exit status {done.code}]" if done.code else "")
    return "\n".join(part for part in (done.output.rstrip(), end) if part) or "[no output]"


def runnable(script: str) -> tuple[str, Done | None]:
    """The script as text that can be an argument of bash; or how it ends at once, where no such text exists."""
    if "\0" in script:
        return "", Done("bash: the command holds a NUL character\n", 126)
    return script.encode("utf-8", "replace").decode("utf-8"), None


class MachineGone(Exception):
    """A command ended the machine itself (it killed the first process, say)."""


class Confined(Protocol):
    """A running machine. One call at a time; ``close`` it when done. All calls raise MachineGone where it has ended.

    ``user`` runs the agent's commands: a name or a number; empty for the machine's own, which is root, or an image's.
    """

    user: str

    def run(
        self, script: str, *, seconds: float | None = None, keep_state: bool = True, user: str | None = None
    ) -> Done:
        """Run a bash script. It goes on in the folder and with the exported variables of the one before.

        Without ``keep_state`` it is a command of ours, not of the agent: it runs as root, with the folder and the
        variables of the machine's start, and leaves no trace in the agent's. ``user`` names another user.
        """
        ...

    def put(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files of root by their absolute paths; folders are made."""
        ...

    def read(self, path: str, limit: int = READ) -> bytes | None:
        """The last ``limit`` bytes of a file by its absolute path; None where there is no regular file."""
        ...

    def sweep(self) -> None:
        """End all that commands have left running."""
        ...

    def close(self) -> None:
        """Take the machine down with all that runs in it. Safe to call twice."""
        ...
