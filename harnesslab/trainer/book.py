"""The lab's budget in its record store: one row for each meter, so that two notebooks never overwrite each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harnesslab.lab import Lab
from harnesslab.store import RunStore

_PLACE = -1
"""The journal's epochs count from 0; this row is for what belongs to all of them."""
_METER = "meter:"
_BUDGET = "budget"
_SINCE = "since"


class LabBook:
    """A :class:`~harnesslab.llm.meter.Book` in a lab's database. Reading starts no database. Raises StoreError as the store does."""

    def __init__(self, lab: Lab):
        self._lab = lab

    @property
    def _runs(self) -> RunStore:
        return self._lab.runs

    def usage(self) -> dict[str, Mapping[str, Mapping[str, Any]]]:
        """What each meter of the lab has written since the last reset."""
        if not self._lab.recorded:
            return {}
        return _written(self._runs.journal(_PLACE))

    def write(self, meter: str, used: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace what one meter has written."""
        self.reserve(meter, used, lambda _: None)

    def reserve(
        self, meter: str, used: Mapping[str, Mapping[str, Any]], allowed: Callable[[Mapping[str, Any]], None]
    ) -> None:
        """Replace what one meter has written, unless ``allowed`` raises on what all have; one transaction."""

        def change(notes: Mapping[str, Any]) -> Mapping[str, Any]:
            allowed(_written(notes))
            return {f"{_prefix(notes)}{meter}": dict(used)}

        self._runs.journal_swap(_PLACE, change)

    def budget(self) -> dict[str, Any]:
        """The limits that were written last."""
        return dict(self._runs.journal_get(_PLACE, _BUDGET, {})) if self._lab.recorded else {}

    def write_budget(self, budget: Mapping[str, Any]) -> None:
        """Replace the limits."""
        self._runs.journal_put(_PLACE, _BUDGET, dict(budget))

    def clear(self) -> None:
        """Start a new count; what was used before stays on record."""
        self._runs.journal_put(_PLACE, _SINCE, self._runs.journal_get(_PLACE, _SINCE, 0) + 1)


def _prefix(notes: Mapping[str, Any]) -> str:
    return f"{_METER}{notes.get(_SINCE, 0)}:"


def _written(notes: Mapping[str, Any]) -> dict[str, Mapping[str, Mapping[str, Any]]]:
    prefix = _prefix(notes)
    return {key.removeprefix(prefix): value for key, value in notes.items() if key.startswith(prefix)}
