"""One module a kind, each with one function ``mine(view)``; the list of them all.

A package makes its own miners known through the entry point group ``harnesslab.miners``, name = any, value = the function.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from harnesslab.plugins import load_plugins
from harnesslab.trainer.estimators.mining.idea import Miner

GROUP = "harnesslab.miners"
"""Entry point group in which third parties register miners."""


def builtin_miners() -> dict[str, Miner]:
    """Every built-in miner by name, sorted by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}").mine for name in names}


def known_miners() -> dict[str, Miner]:
    """Every miner by name: the built-in ones, then those of entry points. One that cannot be used is left out with a warning."""
    builtin = builtin_miners()

    def fault(name: str, loaded: Any) -> str:
        if name in builtin:
            return f"{name!r} is the name of a built-in miner"
        return "" if callable(loaded) else f"it is a {type(loaded).__name__}, not a function that takes a View"

    return {**builtin, **load_plugins(GROUP, fault)}
