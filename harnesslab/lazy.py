"""Public names that a package imports on first use, so that importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(package: str, names: Mapping[str, Sequence[str]], modules: Sequence[str] = ()) -> Callable[[str], Any]:
    """The ``__getattr__`` of ``package``: ``names`` are its public names by the module below it that holds them, ``modules``
    the modules that are public themselves."""
    home = {name: f"{package}.{module}" for module, found in names.items() for name in found}

    def getattribute(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in home:
            known = ", ".join(sorted(getattr(sys.modules[package], "__all__", home)))
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {known}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattribute
