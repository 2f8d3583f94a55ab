"""Plug-ins of installed packages, found by entry point.

A plug-in that cannot be used is named in one warning and left out: a broken package must not take every lab down.
"""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from harnesslab.errors import BrokenPlugin, readers_line

_MARKS = ("harness.toml", ".git")
"""What lies at the top of a lab."""


def load_plugins(group: str, fault: Callable[[str, Any], str]) -> dict[str, Any]:
    """What the entry points of a group name, sorted by name.

    ``fault`` says, for a name and what was loaded, why it cannot be used; it returns an empty text for what can. Warns
    (BrokenPlugin) of everything that is left out.
    """
    found: dict[str, Any] = {}
    points = sorted(importlib.metadata.entry_points(group=group), key=lambda point: (point.name, point.value))
    for point in points:
        problem, loaded = _load(point)
        problem = problem or (f"{point.name!r} is already taken" if point.name in found else "")
        problem = problem or fault(point.name, loaded)
        if problem:
            package = f" of the package {point.dist.name}" if point.dist else ""
            warnings.warn(
                f"The plug-in '{point.name} = {point.value}'{package} (entry point group {group}) is left out: {problem}.",
                BrokenPlugin,
                stacklevel=readers_line(),
            )
        else:
            found[point.name] = loaded
    return found


def _load(point: EntryPoint) -> tuple[str, Any]:
    if (lab := _lab_around(point)) is not None:
        return f"it is part of the lab {lab}, whose code is not run", None
    try:
        return "", point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - anybody's code, see above
        return f"it cannot be loaded: {type(error).__name__}: {' '.join(str(error).split())}"[:400], None


def _lab_around(point: EntryPoint) -> Path | None:
    """The lab that a plug-in lies in, if any: a Python that was started in a lab's folder finds the packages in it."""
    if point.dist is None:
        return None
    place = Path(str(point.dist.locate_file(""))).resolve()
    return next((f for f in (place, *place.parents) if all(os.path.lexists(f / mark) for mark in _MARKS)), None)
