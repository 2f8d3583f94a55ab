"""Where an environment's private Python lies, and whether it is ready. Installing is :mod:`harnesslab.envtools`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from harnesslab.rollout.process.folder import EnvFolder

STAMP = "harnesslab-env.json"
"""Written last: an installation without it is not one."""


def envs_dir() -> Path:
    """The folder of private Pythons: ``HARNESSLAB_ENVS``, else one in the user's cache."""
    chosen = os.environ.get("HARNESSLAB_ENVS")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("harnesslab", appauthor=False)) / "envs"


@dataclass(frozen=True, slots=True)
class Venv:
    """The private Python of a folder, for its present requirements."""

    name: str
    root: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.root / "bin" / "python"

    @property
    def home(self) -> Path:
        """The HOME of its processes, so that caches outlive them."""
        return self.root / "home"

    @property
    def stamp(self) -> Path:
        """The file that says that it is whole."""
        return self.root / STAMP

    def ready(self) -> bool:
        """Is it installed, whole, and is its interpreter still there?"""
        return self.stamp.is_file() and self.python.exists()

    def others(self) -> list[Path]:
        """Installations of the same environment for other requirements."""
        named = re.compile(re.escape(self.name) + "-[0-9a-f]{12}")
        found = self.root.parent.glob(f"{self.name}-*")
        return sorted(path for path in found if path != self.root and named.fullmatch(path.name))


def venv_of(folder: EnvFolder) -> Venv:
    """The private Python of a folder, whether it is there or not."""
    return Venv(folder.name, envs_dir() / f"{folder.name}-{folder.digest()}")
