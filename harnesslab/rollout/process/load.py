"""From a folder to an Environment: in a process of its own, or in this one."""

from __future__ import annotations

import importlib
import shlex
import sys
from importlib.util import find_spec
from typing import Any

from harnesslab.errors import EnvironmentUnavailable
from harnesslab.rollout.env import Environment
from harnesslab.rollout.options import check_options
from harnesslab.rollout.process.bootstrap import add_package
from harnesslab.rollout.process.environment import ProcessEnvironment
from harnesslab.rollout.process.folder import HOME_PACKAGE, EnvFolder
from harnesslab.rollout.process.venv import venv_of


def load_folder(folder: EnvFolder, options: dict[str, Any], process: bool | None = None) -> Environment:
    """The environment of a folder.

    ``process``: true for a process of its own, false for this one. By default its private Python where that is
    installed; else this process, where the folder allows it and its packages are here; else, for a folder that needs no
    packages, a process of this Python. Raises EnvironmentUnavailable where none of these can be had.
    """
    venv = venv_of(folder)
    if process is not False and folder.needs_packages() and venv.ready():
        return ProcessEnvironment(folder.launch(str(venv.python), options, venv.home), folder.path)
    if process is not True and (process is False or folder.manifest.process.in_process):
        missing = _missing_here(folder)
        if not missing:
            return _load_here(folder, options)
        if process is False:
            raise EnvironmentUnavailable(
                f"The environment '{folder.name}' cannot run in this process: {', '.join(missing)} cannot be imported."
            )
    if folder.needs_packages() and (process is None or _missing_here(folder)):
        raise EnvironmentUnavailable(not_installed(folder))
    return ProcessEnvironment(folder.launch(sys.executable, options), folder.path)


def not_installed(folder: EnvFolder) -> str:
    """The sentence for an environment whose packages are not there."""
    older = " It was installed for other requirements than it has now." if venv_of(folder).others() else ""
    size = f" (about {folder.manifest.python.size_mb} MB)" if folder.manifest.python.size_mb else ""
    return f"The environment '{folder.name}' is not installed.{older} Get it with: {install_command(folder)}{size}"


def install_command(folder: EnvFolder) -> str:
    """What a person types to install it."""
    ours = folder.packages()[0][0] == HOME_PACKAGE
    return f"harnesslab envs install {folder.name if ours else shlex.quote(str(folder.path))}"


def how(folder: EnvFolder) -> str:
    """In which Python :func:`load_folder` runs it by default: ``own Python``, ``this process``, ``process``, or empty
    where it is not installed."""
    if folder.needs_packages() and venv_of(folder).ready():
        return "own Python"
    if folder.manifest.process.in_process and not _missing_here(folder):
        return "this process"
    return "" if folder.needs_packages() else "process"


def _missing_here(folder: EnvFolder) -> list[str]:
    """What it imports and is not here. A folder that needs packages must say what it imports to run here."""
    imports = folder.manifest.python.imports
    if folder.needs_packages() and not imports:
        return ["what it needs (its env.toml names no imports)"]
    return [name for name in imports if find_spec(name) is None]


def _load_here(folder: EnvFolder, options: dict[str, Any]) -> Environment:
    package, place = folder.packages()[0]
    if package != HOME_PACKAGE:
        # Read anew each time: people edit their own folders in a notebook.
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        add_package(package, folder.path)
    # No bytecode of folders that people edit: an edit of equal length in the same second would go unseen.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        factory = getattr(importlib.import_module(folder.module()), folder.attribute())
    except Exception as error:
        raise EnvironmentUnavailable(
            f"The environment in {place} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    finally:
        sys.dont_write_bytecode = before
    check_options(folder.name, factory, options)
    made: Environment = factory(**options)
    return made
