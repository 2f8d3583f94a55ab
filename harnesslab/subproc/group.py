"""What a child process gets of our environment, and how it and all that it started ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

GRACE_S = 2.0
"""How long a process that closed its socket, or was killed, may take to be gone."""

PASSED = ("PATH", "LANG", "LC_ALL", "TERM")
"""Variables that an environment's process gets from us. Keys and tokens stay here."""
FIXED = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUTF8": "1",
    "TZ": "UTC",
    # Many processes on few cores: one thread each. Fewer threads also need less memory.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def passed() -> dict[str, str]:
    """Our values of :data:`PASSED`."""
    return {name: os.environ[name] for name in PASSED if name in os.environ}


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started in a session of its own, with all that it started. Safe to call twice."""
    # On macOS the group of a process that has ended, and was not waited for, is refused.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def ending(process: subprocess.Popen[bytes]) -> str:
    """How a process that closed its socket has ended, in words."""
    try:
        code = process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return "closed its socket"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
