"""One module a kind, each with one function ``mine(view)``; the list of them all."""

from __future__ import annotations

import importlib
import pkgutil

from harnesslab.trainer.estimators.mining.idea import Miner


def builtin_miners() -> dict[str, Miner]:
    """Every built-in miner by name, sorted by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f"{__name__}.{name}").mine for name in names}
