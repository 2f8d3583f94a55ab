"""The command that starts a confined child.

With bubblewrap it sees an empty file system with Python's standard library, the system's shared libraries and an empty
/tmp of its own; it has no network, no /proc, no other process and no capability. Installed packages are hidden: data of
environments, answers included, may be among them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path

from harnesslab.errors import ConfinementUnavailable
from harnesslab.harness.confined import inside
from harnesslab.subproc import frames
from harnesslab.subproc.group import FIXED

HERE = "/harnesslab"
PROBE_S = 20.0
_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache")
_STORES = ("/nix/store", "/gnu/store")
_FLAGS = ("-s", "-S", "-P", "-B")


def python() -> str:
    """The Python that runs interventions: this one's own, outside of a virtual environment."""
    found: str = getattr(sys, "_base_executable", "") or sys.executable
    return str(Path(found).resolve())


def environ(scratch: str) -> dict[str, str]:
    """The variables that the child's Python starts with; none of them is left once the file is loaded."""
    return {**FIXED, "HOME": scratch, "TMPDIR": scratch}


def direct() -> list[str]:
    """The command without bubblewrap, up to the arguments of :mod:`.inside`."""
    return [python(), *_FLAGS, str(inside.__file__), str(frames.__file__)]


@lru_cache(maxsize=1)
def bubblewrap(files_mb: int) -> tuple[str, ...] | None:
    """The same command with bubblewrap around it; None where it is not installed or the kernel does not let it work."""
    # A relative entry would be looked up in the lab, which may hold a file of that name.
    path = os.pathsep.join(place for place in os.get_exec_path() if Path(place).is_absolute())
    program = shutil.which("bwrap", path=path)
    if program is None or sys.platform != "linux":
        return None
    room = ["--size", str(files_mb << 20), "--tmpfs", "/tmp", "--chdir", "/tmp"]
    for own in (room, ["--chdir", "/"]):  # before 0.7 there is no --size; then there is no folder either
        walls = (program, *_walls(), *own, "--remount-ro", "/", "--")
        if _works([*walls, python(), *_FLAGS, "-c", "import ctypes, json"]):
            return (*walls, python(), *_FLAGS, f"{HERE}/inside.py", f"{HERE}/frames.py")
    return None


def check_possible() -> None:
    """Raise ConfinementUnavailable where no child process can be confined at all."""
    if os.name != "posix":
        raise ConfinementUnavailable(
            "Python interventions run in a confined process, which needs Linux or macOS; on Windows use WSL, or "
            "unconfined=True for code that you have read."
        )


def _walls() -> list[str]:
    stdlib = sysconfig.get_path("stdlib")
    libraries = str(sysconfig.get_config_var("LIBDIR") or "")
    shown = list(dict.fromkeys([*_SYSTEM, libraries, stdlib, sysconfig.get_path("platstdlib"), python()]))
    shown += [store for store in _STORES if python().startswith(store)]
    words = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"]
    for place in shown:
        if place:
            words += ["--ro-bind-try", place, place]
    for folder in _packages(shown):
        words += ["--tmpfs", folder]
    words += [
        "--ro-bind",
        str(inside.__file__),
        f"{HERE}/inside.py",
        "--ro-bind",
        str(frames.__file__),
        f"{HERE}/frames.py",
    ]
    return words


def _packages(shown: list[str]) -> list[str]:
    """Folders of installed packages in what is shown."""
    found = {str(folder) for place in shown for name in ("site-packages", "dist-packages") for pattern in (name, f"python3*/{name}") for folder in Path(place).glob(pattern)}  # fmt: skip
    return sorted(found)


def _works(command: list[str]) -> bool:
    try:
        ended = subprocess.run(command, env=environ("/tmp"), stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0
