"""For people who use and write environments: install one, list them, make a new one."""

from __future__ import annotations

from harnesslab.envtools.install import install, remove
from harnesslab.envtools.listing import EnvStatus, list_environments
from harnesslab.envtools.new import new

__all__ = ["EnvStatus", "install", "list_environments", "new", "remove"]
