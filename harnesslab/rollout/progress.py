"""How far a long piece of work is. The loop's thread counts; the caller's thread draws.

Widgets and displays are touched only by the thread that runs the cell: kernels drop output that other
threads write. :func:`harnesslab.rollout.loop.run_sync` calls :meth:`Bar.tick` while it waits.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from harnesslab.markup import fill


class Bar:
    """A progress bar with a rate and what is left; HTML in a notebook, one line in a terminal.

    ``total`` is a number of episodes. A bar that is not shown (``show=False``) only counts.
    """

    def __init__(self, label: str, total: int, *, done: int = 0, show: bool = True):
        self.label, self.total, self.done, self.note = label, total, done, ""
        self.show = show
        self._start = time.monotonic()
        self._first = done
        self._handle: Any = None
        self._shown: tuple[int, str, int] | None = None
        self._terminal: Any = None

    def restart(self) -> None:
        """Start the clock once total and done are known, so that the rate counts fresh work only."""
        self._start, self._first = time.monotonic(), self.done

    def advance(self, note: str = "") -> None:
        """Count one more; called from the loop's thread."""
        self.done += 1
        self.note = note

    def tick(self) -> None:
        """Draw what has changed since the last time, at most about twice a second of new state."""
        state = (self.done, self.note, int(time.monotonic() - self._start))
        if not self.show or state == self._shown:
            return
        self._shown = state
        if in_notebook():
            self._draw_html()
        else:
            self._draw_terminal()

    def close(self) -> None:
        """Draw the last state and leave it standing."""
        self._shown = None
        self.tick()
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the rate up to now; ``None`` before anything is done."""
        fresh = self.done - self._first
        if fresh <= 0:
            return None
        return (time.monotonic() - self._start) / fresh * (self.total - self.done)

    def text(self) -> str:
        """One line: label, count, rate, what is left."""
        spent = time.monotonic() - self._start
        fresh = self.done - self._first
        left = self.seconds_left
        rate = f", {fresh / spent:.2f} episodes/s" if fresh and spent > 0 else ""
        rest = f", about {_clock(left)} left" if left is not None and self.done < self.total else ""
        return f"{self.label}: {self.done}/{self.total} episodes in {_clock(spent)}{rate}{rest}" + (
            f" ({self.note})" if self.note else ""
        )

    def _repr_html_(self) -> str:
        bar = '<div><progress value="{}" max="{}" aria-label="{}"></progress> <span>{}</span></div>'
        return str(fill(bar, self.done, max(1, self.total), self.label, self.text(), limit=300))

    def __repr__(self) -> str:
        return self.text()

    def _draw_html(self) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(self, display_id=True)
        else:
            self._handle.update(self)

    def _draw_terminal(self) -> None:
        if self._terminal is None:
            from tqdm import tqdm

            # disable=None: silent where stderr is no terminal, so that logs stay clean.
            self._terminal = tqdm(
                total=self.total, initial=self._first, desc=self.label, unit="ep", file=sys.stderr, disable=None
            )
        self._terminal.set_postfix_str(self.note, refresh=False)
        self._terminal.update(self.done - self._terminal.n)


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this code (not a plain IPython or Python terminal)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
