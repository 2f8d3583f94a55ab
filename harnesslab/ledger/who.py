"""Who decides: the name that a person's verdict carries."""

from __future__ import annotations

import contextlib
import getpass
import os
from pathlib import Path

from harnesslab.errors import StoreError
from harnesslab.store import Repository


def whoami(lab: Path) -> str:
    """The hub's user, else the author's name by git's rules, else the login name; never empty."""
    name = os.environ.get("JUPYTERHUB_USER", "").strip()
    if not name:
        with contextlib.suppress(StoreError):
            name = Repository(lab).user()
    if not name:
        with contextlib.suppress(OSError, KeyError):
            name = getpass.getuser()
    return name or "unknown"
