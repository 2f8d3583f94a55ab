"""An environment's folder: ``env.toml``, ``env.py``, ``requirements.txt``, ``starter/``, read without running any of it.

Folders are found by name beside each other in the package ``harnesslab_envs``, or given by path.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnesslab.errors import ConfigError
from harnesslab.rollout.process.child import Deadlines, Launch
from harnesslab.rollout.process.wire import Start

if TYPE_CHECKING:
    from harnesslab.rollout.process.manifest import Manifest

MANIFEST = "env.toml"
REQUIREMENTS = "requirements.txt"
HOME_PACKAGE = "harnesslab_envs"


class EnvFolder:
    """One environment's folder. ``name`` is the folder's name, in ``harnesslab_envs`` with hyphens for underscores;
    ``manifest`` is what its env.toml says."""

    def __init__(self, path: Path):
        """Raises ConfigError where there is no env.toml, or a wrong one."""
        from harnesslab.rollout.process.manifest import read_manifest

        self.path = path.resolve()
        self.name = _name(self.path) if self.path.parent == _home() else self.path.name
        self.manifest: Manifest = read_manifest(self.path / MANIFEST)

    def requirements(self) -> list[str]:
        """The lines of requirements.txt, without comments."""
        file = self.path / REQUIREMENTS
        lines = file.read_text("utf-8").splitlines() if file.is_file() else []
        return [line for raw in lines if (line := re.sub(r"(^|\s)#.*", "", raw).strip())]

    def needs_packages(self) -> bool:
        """Does it need a Python of its own?"""
        return bool(self.requirements() or self.manifest.python.no_deps)

    def digest(self) -> str:
        """A hash of everything that is installed for it."""
        parts = [*self.requirements(), "--no-deps", *self.manifest.python.no_deps]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    def packages(self) -> tuple[tuple[str, str], ...]:
        """(name, folder) of the packages that its module lies in, parents first."""
        home = _home()
        if home is not None and self.path.parent == home:
            return ((HOME_PACKAGE, str(home)),)
        return ((self._own_package(), str(self.path)),)

    def module(self) -> str:
        """The module that holds the factory, by its full name."""
        package = self.packages()[0][0]
        inside = f"{package}.{self.path.name}" if package == HOME_PACKAGE else package
        return f"{inside}.{self.manifest.factory.partition(':')[0]}"

    def attribute(self) -> str:
        """The factory's name in its module."""
        return self.manifest.factory.partition(":")[2]

    def launch(self, python: str, options: dict[str, Any], home: Path | None = None) -> Launch:
        """How its process is started with that Python."""
        import os

        from harnesslab.data import data_dir

        process = self.manifest.process
        passed = {name: os.environ[name] for name in process.pass_environ if name in os.environ}
        return Launch(
            name=self.name,
            python=python,
            start=Start(self.packages(), self.module(), self.attribute(), options),
            memory_mb=process.memory_mb,
            deadlines=Deadlines(**process.deadlines.model_dump()),
            # The child has no platformdirs to find the data with.
            environ={"HARNESSLAB_DATA": str(data_dir()), **passed, **process.environ},
            home=home,
        )

    def _own_package(self) -> str:
        return "harnesslab_folder_" + re.sub(r"\W", "_", self.name)


def folder_names() -> list[str]:
    """The names of the folders in the package ``harnesslab_envs``. Nothing in them is read."""
    home = _home()
    return sorted(_name(file.parent) for file in home.glob(f"*/{MANIFEST}")) if home is not None else []


def is_path(name: str) -> bool:
    """Is this the path of a folder, and no name or import path?"""
    return ":" not in name and ("/" in name or name.startswith(("~", ".")))


def find_folder(name: str) -> EnvFolder | None:
    """The folder of that name, or at that path (anything that holds a slash, or ``~`` or ``.`` first).

    Raises ConfigError where a path holds no environment, or its env.toml is wrong.
    """
    if is_path(name):
        path = Path(name).expanduser()
        try:
            there = (path / MANIFEST).is_file()
        except (OSError, ValueError):  # too long for a path, or with a null byte
            there = False
        if not there:
            raise ConfigError(
                f"There is no environment in {str(path)[:300]}: it has no {MANIFEST}. Create one: harnesslab envs new NAME"
            )
        return EnvFolder(path)
    home = _home()
    if not re.fullmatch(r"[\w-]{1,100}", name):
        return None
    inside = home / name.replace("-", "_") if home is not None else None
    return EnvFolder(inside) if inside is not None and (inside / MANIFEST).is_file() else None


def _name(path: Path) -> str:
    """What people type for a folder of the package, whose name is one of a Python module."""
    return path.name.replace("_", "-")


def _home() -> Path | None:
    spec = importlib.util.find_spec(HOME_PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]).resolve() if places else None
