"""The trainer that was made last: the one that a cell magic means when it names none."""

from __future__ import annotations

import weakref
from typing import Any

_latest: weakref.ref[Any] | None = None


def note(trainer: object) -> None:
    """Remember the trainer, without keeping it alive."""
    global _latest
    _latest = weakref.ref(trainer)


def latest() -> Any:
    """The :class:`~harnesslab.Trainer` that was made last in this process, if it is still there, else None."""
    return _latest() if _latest is not None else None
