"""What a meter needs of whoever keeps its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Book(Protocol):
    """Where a meter's figures last longer than the process, for all meters of a lab together."""

    def usage(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """What each meter has written: by meter, role and field of :class:`~harnesslab.llm.meter.Usage`."""
        ...

    def write(self, meter: str, used: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace what one meter has written."""
        ...

    def reserve(
        self,
        meter: str,
        used: Mapping[str, Mapping[str, Any]],
        allowed: Callable[[Mapping[str, Mapping[str, Mapping[str, Any]]]], None],
    ) -> None:
        """Write ``used``, unless ``allowed``, which gets what all meters have written, raises. Nobody else writes meanwhile."""
        ...

    def budget(self) -> Mapping[str, Any]:
        """The limits that were written last, by field of :class:`~harnesslab.llm.meter.Budget`; empty at first."""
        ...

    def write_budget(self, budget: Mapping[str, Any]) -> None:
        """Replace the limits."""
        ...

    def clear(self) -> None:
        """Forget what all meters have written; the limits stay."""
        ...
