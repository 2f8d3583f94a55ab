"""For people who use and write environments: install one, list them, make a new one."""

from __future__ import annotations

from harnesslab.envtools.installation import install, remove
from harnesslab.envtools.listing import EnvStatus, list_environments
from harnesslab.envtools.scaffold import new

__all__ = ["EnvStatus", "install", "list_environments", "new", "remove"]
