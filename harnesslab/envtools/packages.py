"""Makes a virtual environment and fills it: uv where it is present, else the standard venv and pip."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Protocol

from harnesslab.envtools.progress import Bar
from harnesslab.envtools.pythons import find_python, version_of
from harnesslab.errors import EnvironmentUnavailable
from harnesslab.rollout.process.folder import EnvFolder
from harnesslab.rollout.process.venv import Venv

LINES_KEPT = 12
"""Lines of the installer's output that an error shows."""


class Installer(Protocol):
    """One way to make and fill a virtual environment."""

    name: str

    def make(self, bar: Bar) -> None:
        """Make the virtual environment. Raises EnvironmentUnavailable."""
        ...

    def add(self, arguments: list[str], bar: Bar) -> None:
        """Install packages into it. Raises EnvironmentUnavailable."""
        ...

    def version(self) -> str:
        """The version of its Python."""
        ...


def installer(folder: EnvFolder, venv: Venv, python: str | None) -> Installer:
    """The installer for this machine."""
    uv = find_uv()
    return UvInstaller(uv, folder, venv, python) if uv else PipInstaller(folder, venv, python)


def find_uv() -> str | None:
    """The path of uv: on the PATH, or beside our Python."""
    return shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


class PipInstaller:
    """venv and pip of the standard library."""

    name = "pip"

    def __init__(self, folder: EnvFolder, venv: Venv, python: str | None):
        self._folder, self._venv = folder, venv
        self._python = find_python(folder.name, folder.manifest.python.requires, python)

    def make(self, bar: Bar) -> None:
        """``python -m venv``, with pip."""
        run([self._python, "-m", "venv", str(self._venv.root)], self._folder.name, bar)

    def add(self, arguments: list[str], bar: Bar) -> None:
        """``pip install``."""
        pip = [str(self._venv.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        run([*pip, *arguments], self._folder.name, bar)

    def version(self) -> str:
        """The version of its Python."""
        return str(version_of(str(self._venv.python)))


class UvInstaller:
    """uv, which also brings a Python of the right version where none is here."""

    name = "uv"

    def __init__(self, uv: str, folder: EnvFolder, venv: Venv, python: str | None):
        self._uv, self._folder, self._venv = uv, folder, venv
        self._python = python

    def make(self, bar: Bar) -> None:
        """``uv venv``."""
        run([self._uv, "venv", "--python", self._which(), str(self._venv.root)], self._folder.name, bar)

    def add(self, arguments: list[str], bar: Bar) -> None:
        """``uv pip install``."""
        run([self._uv, "pip", "install", "--python", str(self._venv.python), *arguments], self._folder.name, bar)

    def version(self) -> str:
        """The version of its Python."""
        return str(version_of(str(self._venv.python)))

    def _which(self) -> str:
        requires = self._folder.manifest.python.requires
        try:
            return find_python(self._folder.name, requires, self._python)
        except EnvironmentUnavailable:
            if self._python is not None:
                raise
            return requires


def run(command: list[str], name: str, bar: Bar) -> None:
    """Run an installer's command, showing each line of its output on the bar.

    Raises EnvironmentUnavailable with its last lines. An Interrupt ends it.
    """
    last: deque[str] = deque(maxlen=LINES_KEPT)
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            encoding="utf-8", errors="replace",
        )  # fmt: skip
    except OSError as error:
        raise EnvironmentUnavailable(f"{command[0]} cannot be run: {error.strerror}.") from error
    with process:
        try:
            for line in process.stdout or ():
                if line.strip():
                    last.append(line.strip()[:300])
                    bar.line(line.strip())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        words = "\n".join(last)
        raise EnvironmentUnavailable(
            f"The packages of '{name}' could not be installed; nothing was left behind. The installer said:\n{words}"
        )
