"""Makes the private Python of an environment, whole or not at all.

The folder of an installation is named by the hash of its requirements, and its stamp is written last. What has no
stamp does not count and is removed by the next try; what is in use stays until its successor is whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harnesslab.envtools.packages import Installer, installer
from harnesslab.envtools.progress import Bar
from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable
from harnesslab.rollout.process.child import Child
from harnesslab.rollout.process.folder import EnvFolder, find_folder, folder_names
from harnesslab.rollout.process.venv import Venv, venv_of

LOCK_S = 1800.0
"""Seconds to wait for another installation of the same environment."""


def install(name: str, *, python: str | None = None, again: bool = False, progress: bool = True) -> Path:
    """Install an environment by name or path and return the folder of its private Python.

    ``python`` is a version ("3.12") or a path. ``again`` replaces what is there. Raises EnvironmentUnavailable, with the
    installer's own last words, if it cannot be installed; nothing is left behind then.
    """
    folder = named_folder(name)
    venv = venv_of(folder)
    if not folder.needs_packages():
        raise ConfigError(f"The environment '{folder.name}' needs no installation.")
    with _lock(venv):
        if venv.ready() and not again and python is None:
            return venv.root
        total = 2 + len(folder.requirements()) + len(folder.manifest.python.no_deps)
        with _whole_or_nothing(venv), Bar(folder.name, total, progress) as bar:
            tool = installer(folder, venv, python)
            _fill(folder, venv, tool, bar)
        for old in venv.others():
            shutil.rmtree(old, ignore_errors=True)
    return venv.root


def remove(name: str) -> list[Path]:
    """Remove the private Pythons of an environment, old ones too; returns the folders that are gone."""
    venv = venv_of(named_folder(name))
    with _lock(venv):
        gone = [root for root in (venv.root, *venv.others()) if root.is_dir()]
        for root in gone:
            # The stamp first: a removal that is cut off leaves no installation that looks whole.
            (root / venv.stamp.name).unlink(missing_ok=True)
            shutil.rmtree(root)
    return gone


def named_folder(name: str) -> EnvFolder:
    """The folder of that name or path. Raises EnvironmentUnavailable with the names that there are."""
    folder = find_folder(name)
    if folder is None:
        known = ", ".join(folder_names()) or "none"
        raise EnvironmentUnavailable(f"Unknown environment folder '{name}'. Available: {known}.")
    return folder


def _fill(folder: EnvFolder, venv: Venv, tool: Installer, bar: Bar) -> None:
    bar.say("making its Python")
    tool.make(bar)
    bar.step()
    # First, so that what requirements.txt pins wins over what came without its dependencies.
    for requirement in folder.manifest.python.no_deps:
        tool.add(["--no-deps", requirement], bar)
        bar.step()
    if folder.requirements():
        tool.add(["-r", str(folder.path / "requirements.txt")], bar)
    bar.say("starting it once")
    note = _try(folder, venv)
    venv.home.mkdir(exist_ok=True)
    stamp = {
        "environment": folder.name,
        "python": tool.version(),
        "tool": tool.name,
        "harnesslab": _version(),
        "note": note,
    }
    venv.stamp.write_text(json.dumps(stamp, indent=1) + "\n", "utf-8")
    bar.finish()


def _try(folder: EnvFolder, venv: Venv) -> str:
    """Start the environment once. Missing data is a note; anything else is a failure."""
    try:
        child = Child(folder.launch(str(venv.python), {}))
    except EnvironmentFault as fault:
        raise EnvironmentUnavailable(f"The environment '{folder.name}' does not start: {fault}") from fault
    except EnvironmentUnavailable as missing:
        return str(missing)
    child.kill()
    return ""


@contextmanager
def _whole_or_nothing(venv: Venv) -> Iterator[None]:
    """Remove the folder when anything goes wrong in it, also an Interrupt."""
    try:
        if venv.root.exists():
            venv.stamp.unlink(missing_ok=True)
            shutil.rmtree(venv.root)
        venv.root.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise EnvironmentUnavailable(f"The environment cannot be written to {venv.root}: {error}") from error
    finally:
        if not venv.stamp.is_file():
            shutil.rmtree(venv.root, ignore_errors=True)


@contextmanager
def _lock(venv: Venv) -> Iterator[None]:
    import filelock

    try:
        venv.root.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(venv.root.parent / f".{venv.name}.lock", timeout=LOCK_S):
            yield
    except filelock.Timeout:
        raise EnvironmentUnavailable(f"Another process has been installing '{venv.name}' for too long.") from None


def _version() -> str:
    from harnesslab._version import __version__

    return __version__
