"""The trainer that was made last: the one that a cell magic means when it names none."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnesslab.trainer.trainer import Trainer

_latest: weakref.ref[Trainer] | None = None


def note(trainer: Trainer) -> None:
    """Remember the trainer, without keeping it alive."""
    global _latest
    _latest = weakref.ref(trainer)


def latest() -> Trainer | None:
    """The trainer that was made last in this process, if it is still there."""
    return _latest() if _latest is not None else None
