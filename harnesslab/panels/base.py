"""What all panels share: guarded buttons, a busy flag, an error line, and a static view that outlives the kernel.

A panel is a view. What it shows lies in git and in the store; a panel that is made again shows the same. Only core
ipywidgets are used and no Output widget: its capture races with threads, and nbclient stalls on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harnesslab import markup
from harnesslab.errors import HarnesslabError, OrderError
from harnesslab.extras import comes_with
from harnesslab.panels.work import Job

if TYPE_CHECKING:
    import ipywidgets

MIME = "application/vnd.jupyter.widget-view+json"
RERUN = "Static view of the last state. Run the cell again to get the buttons."


class Panel:
    """Base of the panels. Subclasses fill ``box``, and say with :meth:`static` and :meth:`plain` what lasts.

    ``log`` lists the errors that were shown, oldest first.
    """

    def __init__(self) -> None:
        with comes_with("lab"):
            import ipywidgets as widgets

        self.log: list[str] = []
        self.error = widgets.HTML()
        self.status = widgets.HTML()
        self._controls: list[ipywidgets.Widget] = []
        self._off: set[ipywidgets.Widget] = set()
        self._busy = threading.Lock()
        self._handle: Any = None
        self._main: asyncio.AbstractEventLoop | None = None
        self.box = widgets.VBox()

    # -- for subclasses -------------------------------------------------------------------------------

    def static(self) -> markup.Markup:
        """The panel as HTML without widgets, all text escaped."""
        raise NotImplementedError

    def plain(self) -> str:
        """The panel in words."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Bring the widgets up to date with git and the store."""
        raise NotImplementedError

    def button(self, words: str, tooltip: str, action: Callable[[], Any], style: str = "") -> ipywidgets.Button:
        """A button with words and a tooltip whose handler cannot fail unseen."""
        with comes_with("lab"):
            import ipywidgets as widgets

        made = widgets.Button(description=words, tooltip=tooltip, button_style=style)
        made.layout.width, made.layout.flex = "auto", "0 0 auto"
        made.on_click(lambda _button: self.guarded(action))
        return self.control(made)

    def control(self, widget: Any) -> Any:
        """Register a widget that is switched off while the panel is busy."""
        self._controls.append(widget)
        return widget

    def follow(self, widget: Any, action: Callable[[Any], None]) -> None:
        """Call ``action`` with the widget's new value, guarded, when the user changes it."""
        widget.observe(lambda change: self.guarded(lambda: action(change["new"]), quiet=True), names="value")

    # -- work -----------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether something is being done that no second click may start."""
        return self._busy.locked()

    def guarded(self, action: Callable[[], Any], *, quiet: bool = False) -> None:
        """Run a handler: what it raises is shown and logged, never lost; a click on a busy panel does nothing.

        ``quiet`` handlers only look and do not hold the panel. A handler that returns a Job leaves the panel busy until the
        job calls :meth:`release`.
        """
        if quiet:
            try:
                action()
            except Exception as error:  # noqa: BLE001  (a click has no other way to report it)
                self.show_error(error)
            return
        if not self._busy.acquire(blocking=False):
            return
        started: Any = None
        try:
            self.show_error(None)
            self.enable(False)
            started = action()
        except Exception as error:  # noqa: BLE001  (a click has no other way to report it)
            self.show_error(error)
        finally:
            if not isinstance(started, Job):
                self.release()

    def exclusive(self, action: Callable[[], Any]) -> Any:
        """The same from Python: errors are raised, and a busy panel is an error."""
        if not self._busy.acquire(blocking=False):
            raise OrderError("the panel is busy with a measurement: wait for it, or cancel it first")
        try:
            self.show_error(None)
            return action()
        finally:
            self.release()

    def release(self) -> None:
        """The work is over: buttons back on, everything drawn anew."""
        if self._busy.locked():
            self._busy.release()
        self.enable(True)
        try:
            self.redraw()
        except Exception as error:  # noqa: BLE001  (a click has no other way to report it)
            self.show_error(error)
        self.update_static()

    def show_error(self, error: BaseException | None) -> None:
        """Put an error into the panel's error line and the log; ``None`` clears the line."""
        if error is None:
            self.error.value = ""
            return
        message = str(error) if isinstance(error, HarnesslabError) else f"{type(error).__name__}: {error}"
        self.log.append(message)
        self.error.value = markup.page(markup.error(message))

    def enable(self, on: bool) -> None:
        """Switch the controls; those that :meth:`only` switched off stay off."""
        for widget in self._controls:
            widget.disabled = not on or widget in self._off

    def only(self, states: dict[Any, bool]) -> None:
        """Say which controls make sense now; the others are switched off until told otherwise."""
        for widget, sensible in states.items():
            (self._off.discard if sensible else self._off.add)(widget)
        self.enable(not self.busy)

    # -- showing --------------------------------------------------------------------------------------

    def bundle(self) -> dict[str, str]:
        """The static view in the forms that a notebook file keeps."""
        return {"text/html": str(self.static()), "text/plain": self.plain()}

    def _repr_mimebundle_(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> dict[str, Any]:
        """Widget, HTML and plain text: a front end takes what it can show."""
        return {MIME: {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}, **self.bundle()}

    def _ipython_display_(self) -> None:
        """The widget, and below it the static view as an output of its own.

        Of one output JupyterLab shows the widget alone, and after a restart "model not found" in its place; the second output
        is what a reader then sees.
        """
        from IPython.display import display

        with contextlib.suppress(RuntimeError):  # no loop runs in a plain terminal
            self._main = asyncio.get_running_loop()
        display(self._repr_mimebundle_(), raw=True)
        self._handle = display(self._summary(), raw=True, display_id=True)

    def update_static(self) -> None:
        """Draw the output below the widget anew; in the thread that runs cells, since kernels drop what others write."""
        if self._handle is None:
            return
        if threading.current_thread() is threading.main_thread():
            self._handle.update(self._summary(), raw=True)
        elif self._main is not None:
            with contextlib.suppress(RuntimeError):  # the kernel is going down
                self._main.call_soon_threadsafe(self.update_static)

    def _summary(self) -> dict[str, str]:
        body = markup.section(RERUN, self.static(), open_=False)
        return {"text/html": str(markup.page(body)), "text/plain": self.plain()}

    def __repr__(self) -> str:
        return self.plain()
