"""Which environment a lab is for: noted in its folder, and believed only as far as somebody else's note may be."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from harnesslab.errors import ConfigError
from harnesslab.rollout.registry import is_installed
from harnesslab.store import ownfiles

_NOTE = ".harnesslab/lab.json"
"""Which environment the lab is for. Not in git; ``Lab.open(path, env=...)`` writes it again."""


def remembered_environment(folder: Path, trust: bool) -> str:
    """The environment that the lab was opened with last. Raises ConfigError where it names none, or code without ``trust``."""
    name = remembered(folder)
    if name is None:
        raise ConfigError(f"{folder} does not say which environment it is for: pass env='kitchen', for example")
    if not trust and not is_installed(name, outside=folder):
        # Whoever made the lab may have written this, and loading it would run their code.
        raise ConfigError(
            f"{folder} names {name[:200]!r} as its environment, which is not an installed one, and loading it would run its code: "
            f"pass env={name[:200]!r} if you trust it, or trust=True to run whatever this lab names"
        )
    return name


def remembered(folder: Path) -> str | None:
    """The name that was noted, unchecked; None where there is none. Raises ConfigError for a damaged note."""
    try:
        return str(json.loads(ownfiles.read(folder, _NOTE).decode("utf-8"))["environment"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{folder / _NOTE} is damaged ({error}): delete it and pass env=...") from error


def remember(folder: Path, name: str) -> None:
    """Note the environment that the caller named."""
    data = json.dumps({"environment": name}).encode()
    with contextlib.suppress(FileNotFoundError):
        if ownfiles.read(folder, _NOTE) == data:
            return
    ownfiles.write(folder, _NOTE, data)
