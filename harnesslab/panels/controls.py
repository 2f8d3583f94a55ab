"""The widgets of the interventions panel, and what their handlers call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnesslab import markup
from harnesslab.extras import comes_with
from harnesslab.markup import page
from harnesslab.rollout.progress import Bar
from harnesslab.trainer.edit import edited, main_file

if TYPE_CHECKING:
    from harnesslab.panels.intervention_view import InterventionsPanel
    from harnesslab.panels.work import Job
    from harnesslab.trainer.loss import Loss


class Controls:
    """One table, one chooser, one row of buttons for the chosen proposal: few widgets, whatever the number of proposals."""

    def __init__(self, panel: InterventionsPanel):
        with comes_with("lab"):
            import ipywidgets as widgets

        self._panel = panel
        options = [(f"{i}: {row.proposal.name}"[:100], i) for i, row in enumerate(panel.rows)]
        self._table = widgets.HTML()
        self._choice = panel.control(widgets.Dropdown(options=options, description="Proposal"))
        self._detail = widgets.HTML()
        self._file = panel.control(widgets.Dropdown(options=[], description="File"))
        self._text = panel.control(widgets.Textarea(rows=10, description="Edit", continuous_update=False))
        self._text.layout.width = "95%"
        self._text_error = widgets.HTML()
        self._reason = panel.control(
            widgets.Text(description="Reason", placeholder="why you promote or reject it; stored in git")
        )
        self._reason.layout.width = "60%"
        self._bar = widgets.IntProgress(min=0, max=1)
        self._bar.layout.visibility = "hidden"
        self._use = panel.button("Use this text", "Put the edited text in the proposal's place", self._use_text)
        self._reset = panel.button("Original text", "Go back to the text as it was proposed", self._original)
        self._measure = panel.button("Measure", "Play the gate tasks with and without it", self._start, "primary")
        self._promote = panel.button(
            "Promote", "Make it part of the baseline, with your reason", self._promoted, "success"
        )
        self._reject = panel.button("Reject", "Keep it as rejected, with your reason", self._rejected, "danger")
        self._undo = panel.button("Undo", "Take the decision on this proposal back", self._undone)
        # Not one of the panel's controls: it has to work while the panel is busy.
        self._cancel = widgets.Button(
            description="Cancel", tooltip="Stop measuring; finished episodes are kept", disabled=True
        )
        self._cancel.on_click(lambda _button: panel.cancel())
        panel.follow(self._choice, lambda _i: self._chosen())
        panel.follow(self._file, lambda _path: self._load_text())
        panel.follow(self._text, lambda value: self._check(value))
        editor = widgets.Accordion(
            children=[widgets.VBox([self._file, self._text, self._text_error, widgets.HBox([self._use, self._reset])])],
            titles=("Edit the intervention",),
        )
        self.children: list[Any] = [
            self._table,
            self._choice,
            self._detail,
            editor,
            widgets.HBox([self._measure, self._cancel, self._bar, panel.status]),
            self._reason,
            widgets.HBox([self._promote, self._reject, self._undo]),
            panel.error,
        ]
        self._load_files()

    def choose(self, i: int) -> None:
        """Show proposal ``i``."""
        self._choice.value = i

    def redraw(self) -> None:
        """Everything that depends on git, the store, or the chosen proposal."""
        i = self._choice.value
        self._table.value = page(self._panel.overview(i))
        if i is None:
            self._detail.value = page(markup.paragraph("The estimator proposes nothing."))
            self._panel.only(
                dict.fromkeys((self._measure, self._promote, self._reject, self._undo, self._use, self._reset), False)
            )
            return
        self._detail.value = page(self._panel.detail(i))
        now = self._panel.standing(i)
        acts = {self._promote: "promote", self._reject: "reject", self._undo: "undo"}
        open_ = dict.fromkeys((self._measure, self._use), not now.decided)
        changed = self._panel.rows[i].changed and not now.decided
        self._panel.only({**open_, **{button: act in now.acts for button, act in acts.items()}, self._reset: changed})

    def measuring(self, bar: Bar) -> None:
        """Show how far a measurement is; called from harnesslab's loop."""
        self._cancel.disabled = False
        self._bar.layout.visibility = "visible"
        self._bar.max, self._bar.value = max(1, bar.total), bar.done
        self._panel.status.value = page(markup.fill("<p role='status'>{}</p>", bar.text(), limit=300))

    def measured(self, bar: Bar) -> None:
        """The measurement is over."""
        self._cancel.disabled = True
        self._bar.layout.visibility = "hidden"
        self._panel.status.value = page(markup.fill("<p role='status'>{}</p>", bar.text(), limit=300))

    # -- handlers -------------------------------------------------------------------------------------

    def _chosen(self) -> None:
        self._load_files()
        self._panel.show_error(None)
        self.redraw()

    def _start(self) -> Job[Loss]:
        return self._panel.start(self._choice.value)

    def _promoted(self) -> None:
        self._panel.decide(self._choice.value, "promote", self._reason.value)
        self._reason.value = ""

    def _rejected(self) -> None:
        self._panel.decide(self._choice.value, "reject", self._reason.value)
        self._reason.value = ""

    def _undone(self) -> None:
        self._panel.take_back(self._choice.value)

    def _use_text(self) -> None:
        self._panel.put_text(self._choice.value, self._text.value, self._file.value)

    def _original(self) -> None:
        row = self._panel.rows[self._choice.value]
        row.proposal, row.loss = row.original, None
        self._load_files()

    # -- the editor -----------------------------------------------------------------------------------

    def _load_files(self) -> None:
        if self._choice.value is None:
            return
        proposal = self._panel.rows[self._choice.value].proposal
        paths = [path for path, body in proposal.changes.items() if body is not None]
        self._file.options = paths
        main = main_file(proposal)
        self._file.value = main if main in paths else (paths[0] if paths else None)
        self._file.layout.display = None if len(paths) > 1 else "none"
        self._load_text()

    def _load_text(self) -> None:
        proposal = self._panel.rows[self._choice.value].proposal
        self._text.value = proposal.changes.get(self._file.value or "") or ""
        self._text_error.value = ""

    def _check(self, value: str) -> None:
        """Tell at once whether the text is an intervention; nothing is changed yet."""
        proposal = self._panel.rows[self._choice.value].proposal
        self._text_error.value = ""
        if self._file.value is None or value == proposal.changes.get(self._file.value):
            return
        try:
            edited(proposal, value, path=self._file.value, trust=self._panel.trainer.lab.trust)
        except Exception as error:  # noqa: BLE001  (a click has no other way to tell)
            self._text_error.value = page(markup.error(str(error)))
            return
        self._text_error.value = page(
            markup.fill("<p role='status'>{}</p>", "The text is a valid intervention; 'Use this text' takes it.")
        )
