"""Finds a Python of the version that an environment needs, where uv does not do it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from harnesslab.errors import ConfigError, EnvironmentUnavailable

NEWEST = 14
"""The newest Python 3 that is looked for by name on the PATH."""


def find_python(name: str, requires: str, wanted: str | None = None) -> str:
    """The path of a Python that fits ``requires``: ``wanted`` (a path or a version like "3.12"), else our own, else
    the newest on the PATH. Raises EnvironmentUnavailable that says what to install, ConfigError on a wrong specifier.
    """
    try:
        allowed = SpecifierSet(requires)
    except InvalidSpecifier:
        raise ConfigError(
            f"The environment '{name}' asks for Python '{requires}', which is not a version specifier."
        ) from None
    if wanted is not None:
        return _wanted(name, allowed, wanted)
    candidates = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(NEWEST, 10, -1))]
    for path in candidates:
        version = version_of(path) if path else None
        if path and version is not None and version in allowed:
            return path
    raise EnvironmentUnavailable(
        f"The environment '{name}' needs Python {requires} but none was found. Install one, or uv (pip install uv), "
        "which downloads it, or name one with --python."
    )


def version_of(python: str) -> Version | None:
    """The version of an interpreter, or None where it does not run (a shim of a version that is not installed)."""
    code = "import platform; print(platform.python_version())"
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=30, check=True)
        return Version(done.stdout.strip())
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _wanted(name: str, allowed: SpecifierSet, wanted: str) -> str:
    by_version = re.fullmatch(r"3\.\d+", wanted)
    path = shutil.which(f"python{wanted}" if by_version else wanted)
    version = version_of(path) if path else None
    if path is None or version is None:
        raise EnvironmentUnavailable(f"Could not run a Python '{wanted}'.")
    if version not in allowed:
        raise EnvironmentUnavailable(f"The environment '{name}' needs Python {allowed}; '{wanted}' is {version}.")
    return path
