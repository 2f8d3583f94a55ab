"""Which task a reset means: the one rule by which options name what an environment holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from harnesslab.errors import EnvironmentFault

T = TypeVar("T")


def picked(options: Mapping[str, Any] | None, key: str, known: Mapping[str, T]) -> T:
    """What ``options[key]`` names among ``known``. Raises EnvironmentFault, which says what a reset takes."""
    name = (options or {}).get(key)
    found = known.get(name) if isinstance(name, str) else None
    if found is None:
        raise EnvironmentFault(f"There is no task {name!r}: reset(options={{'{key}': ...}}) takes a Task's options.")
    return found
