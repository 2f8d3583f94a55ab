"""The editor of a proposal's files: says at once whether a text is valid, and changes nothing before it is told to."""

from __future__ import annotations

from collections.abc import Callable

from harnesslab import markup
from harnesslab.extras import comes_with
from harnesslab.markup import page
from harnesslab.panels.base import Panel
from harnesslab.trainer.edit import edited, main_file
from harnesslab.trainer.proposal import Proposal


class Editor:
    """Widgets in ``box``, on ``panel``. ``use(text, path)`` takes an edited text, ``original()`` goes back to the first one.

    ``unconfined``: check Python interventions in this process.
    """

    def __init__(
        self, panel: Panel, use: Callable[[str, str | None], object], original: Callable[[], None], *, unconfined: bool
    ):
        with comes_with("lab"):
            import ipywidgets as widgets

        self._unconfined = unconfined
        self._proposal: Proposal | None = None
        self._file = panel.control(widgets.Dropdown(options=[], description="File"))
        self.text = panel.control(widgets.Textarea(rows=10, description="Edit", continuous_update=False))
        self.text.layout.width = "95%"
        self.said = widgets.HTML()
        self.use = panel.button(
            "Use this text",
            "Replace the proposal by the edited text",
            lambda: use(self.text.value, self._file.value),
        )
        self.reset = panel.button("Original text", "Restore the proposed text", original)
        panel.follow(self._file, lambda _path: self._load())
        panel.follow(self.text, self._check)
        body = widgets.VBox([self._file, self.text, self.said, widgets.HBox([self.use, self.reset])])
        self.box = widgets.Accordion(children=[body], titles=("Edit the intervention",))

    def show(self, proposal: Proposal) -> None:
        """Put the proposal's files into the widgets, its main one first."""
        self._proposal = proposal
        paths = [path for path, body in proposal.changes.items() if body is not None]
        self._file.options = paths
        main = main_file(proposal)
        self._file.value = main if main in paths else (paths[0] if paths else None)
        self._file.layout.display = None if len(paths) > 1 else "none"
        self._load()

    def _load(self) -> None:
        if self._proposal is not None:
            self.text.value = self._proposal.changes.get(self._file.value or "") or ""
            self.said.value = ""

    def _check(self, value: str) -> None:
        """Say at once whether the text is an intervention."""
        self.said.value = ""
        if self._proposal is None or self._file.value is None or value == self._proposal.changes.get(self._file.value):
            return
        try:
            edited(self._proposal, value, path=self._file.value, unconfined=self._unconfined)
        except Exception as error:  # noqa: BLE001  (a click has no other way to report it)
            self.said.value = page(markup.error(str(error)))
            return
        self.said.value = page(
            markup.fill("<p role='status'>{}</p>", "The text is a valid intervention; 'Use this text' takes it.")
        )
