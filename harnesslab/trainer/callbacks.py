"""Callbacks: what a user hangs on the loop, for logging above all. They look; they decide nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harnesslab.errors import ConfigError, FailedCallback, readers_line
from harnesslab.lab import Lab
from harnesslab.rollout.records import Run
from harnesslab.trainer.config import Settings
from harnesslab.trainer.loss import Loss


@dataclass(frozen=True, slots=True)
class Training:
    """What is trained, for callbacks. ``backbone`` is the identity of the model; ``epochs`` are those asked for."""

    lab: Lab
    backbone: dict[str, Any]
    settings: Settings
    parts: dict[str, str]
    """Class names of the ``estimator``, the ``criterion`` and the ``optimizer``."""
    epochs: int


class Callback:
    """Derive from it, override what you need, and pass it as ``Trainer(callbacks=[...])``.

    The methods do nothing here. They are called in the thread that runs the loop, one callback after the other, in the order
    of the list. One that raises is reported once, with a FailedCallback warning that names it; the epoch goes on. To stop
    a training, ``break`` in the loop.
    """

    def on_train_start(self, training: Training) -> None:
        """``trainer.epochs(n)`` or ``trainer.resume()`` begins."""

    def on_epoch_start(self, epoch: int) -> None:
        """An epoch begins; the first one is 1. The last one ends without a loss where nothing is left to propose."""

    def on_measured(self, run: Run) -> None:
        """The loop has a run: the baseline on the search split, then baseline and candidate on the gate.

        What was measured before is taken from the store, and comes here all the same.
        """

    def on_epoch_end(self, loss: Loss) -> None:
        """The candidate of ``loss.epoch`` was decided on: ``loss.verdict.decision`` is ``promote``, ``reject`` or
        ``undecided``. It also comes where the loop was left, with ``break`` or an error, before a decision.
        """

    def on_train_end(self, training: Training) -> None:
        """The loop is over: all epochs done, nothing left to propose, ``break``, an interrupt or an error."""


class Callbacks:
    """The callbacks of one trainer, called together."""

    def __init__(self, callbacks: Sequence[Callback] | None):
        """Raises ConfigError for anything but a list of Callback objects."""
        given: Any = callbacks if callbacks is not None else ()
        if isinstance(given, str | bytes) or not isinstance(given, Sequence):
            raise ConfigError(f"callbacks must be a list of hl.Callback, not {given!r:.60}")
        for item in given:
            if isinstance(item, type):
                raise ConfigError(f"callbacks holds the class {item.__name__}: make one, with {item.__name__}()")
            if not isinstance(item, Callback):
                raise ConfigError(f"callbacks holds {item!r:.60}, which is not derived from hl.Callback")
        self._items: tuple[Callback, ...] = tuple(given)
        self._reported: set[int] = set()

    def call(self, hook: str, *given: Any) -> None:
        """Call one method of each."""
        for item in self._items:
            try:
                getattr(item, hook)(*given)
            except Exception as error:  # noqa: BLE001 - anybody's code; an epoch that was paid for is not lost for it
                self._report(item, hook, error)

    def _report(self, item: Callback, hook: str, error: Exception) -> None:
        if id(item) in self._reported:
            return
        self._reported.add(id(item))
        text = " ".join(str(error).split())[:300]
        warnings.warn(
            f"The callback {type(item).__name__}.{hook} raised {type(error).__name__}: {text}. The training goes on; "
            f"further errors of {type(item).__name__} are not reported.",
            FailedCallback,
            stacklevel=readers_line(),
        )
