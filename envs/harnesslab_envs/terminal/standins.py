"""Brings the stand-ins for installers (:mod:`.standin`) into a machine, and takes them away again."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harnesslab_envs.sandbox import Confined, python_inside
from harnesslab_envs.terminal.standin import MISSING, TOOLS

FOLDER = "/opt/harnesslab-standins"
MODULES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py", "ctrf")
"""What Python in a machine has beyond the standard library."""
SAID = 400
# `python -m pip` and the pip of a virtual environment come to the stand-in, too.
_PIP = "import os, sys\n\ndef main():\n    os.execv({python!r}, [{python!r}, '-I', '-S', {standin!r}, 'pip', *sys.argv[1:]])\n"


@dataclass(frozen=True, slots=True)
class Standins:
    """Stand-ins that are in a machine. ``prefix`` is a script that puts them before other programs."""

    machine: Confined
    prefix: str

    def missing(self) -> str:
        """What was asked for and is not here, in words; empty where all was."""
        noted = self.machine.read(f"{FOLDER}/{MISSING}") or b""
        return "; ".join(dict.fromkeys(noted.decode("utf-8", "replace").split("\n")[:-1]))[:SAID]


@contextlib.contextmanager
def inside(
    machine: Confined, pytest: Sequence[str] = (), python: str | None = None, path: str = ""
) -> Iterator[Standins]:
    """The stand-ins in a machine, for as long as the context lasts. ``pytest`` are the words that start it there;
    ``python`` runs the stand-ins, and ``path`` is where Python finds more modules."""
    python = python or python_inside()
    standin = f"{FOLDER}/standin.py"
    scripts = {
        f"{FOLDER}/bin/{tool}": f'#!/bin/sh\nexec {shlex.quote(python)} -I -S {standin} {tool} "$@"\n'.encode()
        for tool in TOOLS
        if tool != "pytest" or pytest
    }
    pip = _PIP.format(python=python, standin=standin)
    places = (
        "__init__.py",
        "_internal/__init__.py",
        "_internal/cli/__init__.py",
        "_internal/cli/main.py",
        "__main__.py",
    )
    modules = {f"{FOLDER}/lib/pip/{place}": b"" for place in places}
    modules[f"{FOLDER}/lib/pip/_internal/cli/main.py"] = pip.encode()
    modules[f"{FOLDER}/lib/pip/__main__.py"] = f"{pip}\nmain()\n".encode()
    machine.run(f"rm -rf {FOLDER}", keep_state=False)
    machine.put(scripts, mode=0o755)
    machine.put({standin: Path(__file__).with_name("standin.py").read_bytes(), **modules})
    machine.put({f"{FOLDER}/{MISSING}": b""}, mode=0o666)
    more = f"{FOLDER}/lib" + (f":{path}" if path else "")
    prefix = (
        f"export HARNESSLAB_STANDINS={FOLDER} HARNESSLAB_PYTEST={shlex.quote(chr(31).join(pytest))} "
        f'PATH={FOLDER}/bin:"$PATH" PYTHONPATH={more}:"$PYTHONPATH"\n'
    )
    try:
        yield Standins(machine, prefix)
    finally:
        machine.run(f"rm -rf {FOLDER}", keep_state=False)
