"""The progress bar of an installation: one step a requirement, the installer's present line beside it."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

_ARRIVED = re.compile(r"(?:Collecting|Requirement already satisfied:|\+) +([\w.-]+)")
"""How pip ("Collecting x==1") and uv ("+ x==1") name a package that they deal with."""
WIDTH = 40


class Bar:
    """A tqdm bar over ``total`` steps; silent where ``shown`` is false."""

    def __init__(self, name: str, total: int, shown: bool):
        from tqdm.auto import tqdm

        # None: a notebook and a terminal show it, and a log stays clean.
        self._bar: Any = tqdm(total=total, desc=name, unit="package", disable=None if shown else True, leave=True)
        self._seen: set[str] = set()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def say(self, what: str) -> None:
        """Show what is going on."""
        self._bar.set_postfix_str(what[:WIDTH])

    def step(self) -> None:
        """One step is done; never beyond the total."""
        if self._bar.total is None or self._bar.n < self._bar.total:
            self._bar.update(1)

    def line(self, text: str) -> None:
        """A line of an installer's output: shown, and a step where it names a package for the first time."""
        self.say(text)
        found = _ARRIVED.match(text)
        if found and found[1].lower() not in self._seen:
            self._seen.add(found[1].lower())
            self.step()

    def finish(self) -> None:
        """All is done, whatever was counted."""
        self.say("ready")
        if self._bar.total is not None:
            self._bar.update(self._bar.total - self._bar.n)
