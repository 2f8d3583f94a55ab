"""The failures panel: causes, failed episodes, and each step of one of them."""

from __future__ import annotations

from harnesslab import markup
from harnesslab.errors import ConfigError
from harnesslab.extras import comes_with
from harnesslab.markup import page, table
from harnesslab.panels.base import Panel
from harnesslab.panels.trajectory import episode_html, step_html
from harnesslab.plaintext import clip
from harnesslab.rollout.records import Episode
from harnesslab.trainer.failures import Cluster, Failure, Failures

PAGE = 20
"""Episodes of one page."""
STATIC = 3
"""Clusters whose first failure the static view shows at its bottleneck."""


class FailuresPanel(Panel):
    """Shows why episodes failed. ``show(i, step)`` goes to a failure by its number; nothing here changes anything."""

    def __init__(self, failures: Failures):
        with comes_with("lab"):
            import ipywidgets as widgets

        super().__init__()
        self.failures = failures
        self._chosen: list[Failure] = list(failures)
        self._page = 0
        self._causes = self.control(widgets.Dropdown(options=self._cause_options(), description="Cause"))
        self._list = self.control(widgets.Select(options=[], rows=8, description="Episodes"))
        self._list.layout.width = "auto"
        self._causes.layout.width = "auto"
        self._slider = self.control(widgets.IntSlider(min=0, max=0, description="Step", continuous_update=False))
        self._view = widgets.HTML()
        self._older = self.button("Previous page", "Previous failed episodes", lambda: self._turn(-1))
        self._newer = self.button("Next page", "Next failed episodes", lambda: self._turn(1))
        self._back = self.button("Previous step", "One step back", lambda: self._go(self._slider.value - 1))
        self._on = self.button("Next step", "One step on", lambda: self._go(self._slider.value + 1))
        self._wrong = self.button("First wrong step", "The earliest step that went wrong", self._to_bottleneck)
        self.follow(self._causes, self._choose_cause)
        self.follow(self._list, lambda _place: self._open())
        self.follow(self._slider, lambda _step: self._draw_step())
        self.box.children = [
            widgets.HTML(page(self._clusters())),
            self._causes,
            self._list,
            widgets.HBox([self._older, self._newer, self.status]),
            widgets.HBox([self._slider, self._back, self._on, self._wrong]),
            self.error,
            self._view,
        ]
        self._fill()

    # -- from Python ----------------------------------------------------------------------------------

    def show(self, i: int, step: int | None = None) -> FailuresPanel:
        """Go to failure ``i`` (as ``failures[i]``), at a step or at its bottleneck. Raises ConfigError."""
        if not -len(self.failures) <= i < len(self.failures):
            raise ConfigError(f"no failure {i}; there are {len(self.failures)}, counted from 0")
        self._causes.value = None
        place = i % len(self.failures)
        self._page = place // PAGE
        self._fill(place % PAGE)
        if step is not None:
            self._go(step)
        return self

    @property
    def shown(self) -> tuple[Failure, int] | None:
        """The failure and the step that the viewer shows."""
        failure = self._failure()
        return None if failure is None else (failure, self._slider.value)

    # -- views ----------------------------------------------------------------------------------------

    def static(self) -> markup.Markup:
        """Causes, the step that is shown, and for the largest causes the first failure at the step that went wrong."""
        parts = [self._clusters()]
        if self.shown is not None:
            failure, step = self.shown
            parts.append(markup.section(f"Shown: {failure.episode.task_id}, step {step}", self._moment(failure, step)))
        for cluster in self.failures.clusters[:STATIC]:
            failure = cluster.failures[0]
            title = f"{cluster.label}, {cluster.cause}: {failure.episode.task_id}, step {failure.diagnosis.step}"
            parts.append(markup.section(title, self._moment(failure, failure.diagnosis.step), open_=False))
        return page(*parts)

    def plain(self) -> str:
        return repr(self.failures)

    def redraw(self) -> None:
        self._draw_step()

    # -- inside ---------------------------------------------------------------------------------------

    def _clusters(self) -> markup.Markup:
        rows = [
            (len(cluster), cluster.label, cluster.cause, cluster.signature, _example(cluster))
            for cluster in self.failures.clusters
        ]
        head = ("episodes", "label", "cause", "message", "first example")
        return table(head, rows, caption=self.failures.head())

    def _cause_options(self) -> list[tuple[str, int | None]]:
        options: list[tuple[str, int | None]] = [(f"all causes ({len(self.failures)})", None)]
        for place, cluster in enumerate(self.failures.clusters):
            options.append((f"{cluster.title[:90]} ({len(cluster)})", place))
        return options

    def _choose_cause(self, place: int | None) -> None:
        clusters = self.failures.clusters
        self._chosen = list(self.failures) if place is None else list(clusters[place].failures)
        self._page = 0
        self._fill()

    def _turn(self, by: int) -> None:
        self._page = min(max(self._page + by, 0), self._last_page)
        self._fill()

    @property
    def _last_page(self) -> int:
        return max(0, (len(self._chosen) - 1) // PAGE)

    def _fill(self, choose: int = 0) -> None:
        """Fill the list with the present page."""
        start = self._page * PAGE
        shown = self._chosen[start : start + PAGE]
        self._list.options = [(_line(failure), place) for place, failure in enumerate(shown)]
        self._list.value = choose if shown else None
        count = f"{start + 1} to {start + len(shown)} of {len(self._chosen)}" if shown else "no episode failed"
        self.status.value = page(markup.paragraph(count))
        self.only({self._older: self._page > 0, self._newer: self._page < self._last_page})
        self._open()

    def _failure(self) -> Failure | None:
        place = self._list.value
        return None if place is None else self._chosen[self._page * PAGE + place]

    def _open(self) -> None:
        failure = self._failure()
        if failure is None:
            self._view.value = ""
            return
        steps = len(self._episode(failure).steps)
        self._slider.max = max(0, steps - 1)
        self._to_bottleneck()

    def _to_bottleneck(self) -> None:
        failure = self._failure()
        if failure is not None:
            self._go(failure.diagnosis.step)

    def _go(self, step: int) -> None:
        self._slider.value = min(max(step, 0), self._slider.max)
        self._draw_step()

    def _draw_step(self) -> None:
        failure = self._failure()
        if failure is not None:
            self._view.value = page(self._moment(failure, self._slider.value))
            here = self._slider.value
            self.only({self._back: here > 0, self._on: here < self._slider.max})

    def _moment(self, failure: Failure, step: int) -> markup.Markup:
        episode = self._episode(failure)
        head = episode_html(episode, failure.diagnosis)
        if not episode.steps:
            return head + markup.paragraph("No step was made.")
        shown = episode.steps[min(step, len(episode.steps) - 1)]
        return head + step_html(shown, of=len(episode.steps), diagnosis=failure.diagnosis)

    def _episode(self, failure: Failure) -> Episode:
        trainer = self.failures.trainer
        return trainer.lab.load_steps(failure.episode) if trainer is not None else failure.episode


def _line(failure: Failure) -> str:
    """One line of the list; a Select shows text, so nothing is escaped here."""
    again = f" #{failure.episode.repeat}" if failure.episode.repeat else ""
    line = f"{failure.episode.task_id[:40]}{again}: {failure.diagnosis.cause}, step {failure.diagnosis.step}"
    return f"{line}; {clip(failure.diagnosis.reason, 110)}"


def _example(cluster: Cluster) -> str:
    failure = cluster.failures[0]
    return f"{clip(failure.episode.task_id, 40)}, step {failure.diagnosis.step}: {failure.diagnosis.reason}"
