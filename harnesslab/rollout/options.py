"""Do the options that a user gave fit an environment's factory? Told before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from harnesslab.errors import ConfigError


def check_options(name: str, factory: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raises ConfigError, naming the options that there are, where ``factory(**options)`` cannot be called."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "none"
        raise ConfigError(
            f"The environment '{name}' does not take these options: {error}. Its options: {takes}."
        ) from None
