"""Writes a new environment's folder: small, working, and passed by ``check_env`` as it is."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from harnesslab.errors import ConfigError

TEMPLATE = Path(__file__).parent / "template"
NAME = "__name__"
"""Stands for the new name in the template's files."""


def new(name: str, path: str | Path = ".") -> Path:
    """Write the folder ``path/name`` and return it. Raises ConfigError where the name is none, or it is there."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ConfigError(
            f"'{name}' cannot name an environment: use lower-case letters, digits and _, starting with a letter."
        )
    folder = Path(path).expanduser() / name
    if folder.exists():
        raise ConfigError(f"{folder} already exists.")
    try:
        for source in sorted(TEMPLATE.rglob("*.template")):
            target = folder / source.relative_to(TEMPLATE).with_suffix("")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source.read_text("utf-8").replace(NAME, name), "utf-8")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from error
    return folder
