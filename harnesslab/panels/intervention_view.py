"""The interventions panel: read a proposal, edit it, measure it, accept or reject it with a reason, undo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harnesslab import markup
from harnesslab.analysis.show import verdict_html
from harnesslab.errors import ConfigError, HarnesslabError, OrderError
from harnesslab.extras import comes_with
from harnesslab.ledger import Choice, reason_given
from harnesslab.markup import Markup, page, section, table
from harnesslab.panels.base import Panel
from harnesslab.panels.decisions import Record, Standing
from harnesslab.panels.editor import Editor
from harnesslab.panels.evidence import evidence_html, prediction_html
from harnesslab.panels.work import Job
from harnesslab.plaintext import counted
from harnesslab.rollout.progress import Bar
from harnesslab.trainer.desk import Desk
from harnesslab.trainer.edit import edited
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.proposal import Proposal, Proposals

STATIC = 20
"""Proposals whose details the static view holds."""


@dataclass(slots=True)
class Row:
    """One proposal as it stands in the panel: maybe edited, maybe measured."""

    original: Proposal
    proposal: Proposal
    loss: Loss | None = None

    @property
    def changed(self) -> bool:
        """Whether a person edited it here."""
        return self.proposal.content != self.original.content


class InterventionsPanel(Panel):
    """Everything that the buttons do can be called, too: ``show``, ``edit``, ``measure``, ``promote``, ``reject``, ``undo``."""

    def __init__(self, proposals: Proposals, trainer: Desk[Proposal, Loss]):
        super().__init__()
        self.trainer, self.refused = trainer, proposals.refused
        self.rows = [Row(proposal, proposal) for proposal in proposals]
        self._decided: list[int] = []
        self._job: Job[Loss] | None = None
        self._ui = Controls(self)
        self.box.children = self._ui.children
        self.redraw()

    # -- from Python and from the buttons -------------------------------------------------------------

    def show(self, i: int) -> InterventionsPanel:
        """Show proposal ``i`` in the panel."""
        self._row(i)
        self._ui.choose(i)
        return self

    def edit(self, i: int, text: str, path: str | None = None) -> Proposal:
        """Put another text in the place of a proposal's file (the intervention's own unless ``path`` names another).

        Raises HarnessFileError, with line and key, for a text that is no intervention, and LeakFound for one with the
        literals of a single task; the proposal then stays as it was.
        """
        return self.exclusive(lambda: self.put_text(i, text, path))

    def measure(self, i: int) -> Loss:
        """Measure proposal ``i`` beside the baseline and return the loss; waits for it."""
        return self.exclusive(lambda: self._keep(self._open_row(i), self.trainer.evaluate(self._row(i).proposal)))

    def promote(self, i: int, *, reason: str) -> bool:
        """Promote proposal ``i``; returns whether the baseline moved. Unmeasured proposals can be promoted, and are recorded so."""
        return self.exclusive(lambda: self.decide(i, "promote", reason))

    accept = promote

    def reject(self, i: int, *, reason: str) -> None:
        """Turn proposal ``i`` down; it stays under its rejected ref with the reason."""
        self.exclusive(lambda: self.decide(i, "reject", reason))

    def undo(self, i: int | None = None) -> None:
        """Take back the decision on proposal ``i``, or the last one that was made in this panel."""
        self.exclusive(lambda: self.take_back(i))

    def cancel(self) -> None:
        """Stop a measurement that the button started; the episodes that it finished are kept."""
        if self._job is not None:
            self._job.cancel()

    # -- the same, for the handlers: errors are shown by whoever calls --------------------------------

    def put_text(self, i: int, text: str, path: str | None = None) -> Proposal:
        """See :meth:`edit`."""
        row = self._row(i)
        made = edited(row.proposal, text, path=path, unconfined=self.trainer.lab.unconfined)
        self.trainer.refuse_leaks(made)
        row.proposal, row.loss = made, None
        return made

    def start(self, i: int) -> Job[Loss]:
        """Start measuring on harnesslab's loop; the panel stays busy until :meth:`_ended`."""
        row = self._open_row(i)
        work, bar = self.trainer.prepare(row.proposal)
        self._ui.measuring(bar)

        def ended(loss: Loss | None, error: BaseException | None) -> None:
            if loss is not None:
                self._keep(row, loss)
            self._ended(error, bar)

        self._job = Job(work, bar, self._ui.measuring, ended)
        return self._job

    def decide(self, i: int, decision: Choice, reason: str) -> bool:
        """See :meth:`promote` and :meth:`reject`."""
        row = self._open_row(i)
        reason = reason_given(reason)
        what = row.loss if row.loss is not None else row.proposal
        moved = self.trainer.promote(what, reason) if decision == "promote" else self.trainer.reject(what, reason)
        self._decided.append(i)
        return moved

    def take_back(self, i: int | None) -> None:
        """See :meth:`undo`."""
        if i is None and not self._decided:
            raise OrderError("nothing has been decided in this panel yet; undo(i) takes back an earlier decision")
        chosen = self._decided[-1] if i is None else i
        now = self.standing(chosen)
        if now.candidate is None:
            raise OrderError(f"proposal {chosen} is {now.word}: there is no decision to undo")
        self.trainer.undo(now.candidate.id)
        self._decided = [other for other in self._decided if other != chosen]

    # -- views ----------------------------------------------------------------------------------------

    def standing(self, i: int) -> Standing:
        """What git knows of proposal ``i``."""
        return Record(self.trainer.lab).of(self._row(i).proposal)

    def overview(self, chosen: int | None = None) -> Markup:
        """The table of all proposals."""
        record = Record(self.trainer.lab)
        rows = [self._overview_row(i, record.of(row.proposal), chosen) for i, row in enumerate(self.rows)]
        head = ("", "state", "intervention", "what it does", "should flip", "measured")
        listed = table(head, rows, caption=counted(len(rows), "proposal"), now=chosen)
        refused = markup.join(markup.paragraph(f"Refused {name}: {reason}", 400) for name, reason in self.refused)
        return listed + refused

    def detail(self, i: int, record: Record | None = None) -> Markup:
        """One proposal whole: standing, diff, prediction, evidence, verdict."""
        row, lab = self.rows[i], self.trainer.lab
        proposal = row.proposal
        by = f"{proposal.layer}, {proposal.kind}, proposed by {proposal.estimator}"
        parts = [markup.fill("<p><b>{}</b> ({}): {}</p>", proposal.name, by, proposal.about, limit=400)]
        now = (record or Record(lab)).of(proposal)
        if sentence := now.sentence:
            parts.append(markup.paragraph(sentence, 500, mark=True))
        parts.append(section("Diff against the baseline", markup.diff(proposal.diff(lab.harness().files))))
        if verdict := row.loss.judged if row.loss is not None else now.measured:
            parts.append(section("Verdict", verdict_html(verdict)))
        parts.append(section("Prediction", prediction_html(proposal.prediction)))
        parts.append(section(f"Evidence ({len(proposal.evidence)})", evidence_html(proposal.evidence, lab)))
        return markup.join(parts)

    def static(self) -> Markup:
        record = Record(self.trainer.lab)
        folded = [
            section(f"{i}: {row.proposal.name}", self.detail(i, record), open_=False)
            for i, row in enumerate(self.rows[:STATIC])
        ]
        return page(self.overview(), *folded)

    def plain(self) -> str:
        lines = [counted(len(self.rows), "proposal")]
        record = Record(self.trainer.lab)
        for i, row in enumerate(self.rows):
            now = record.of(row.proposal)
            measured = _measured(row.loss, now)
            lines.append(f"  [{i}] {now.word}: {row.proposal}" + (f"; {measured}" if measured else ""))
        return "\n".join(lines + [f"  refused {name}: {reason}" for name, reason in self.refused])

    def redraw(self) -> None:
        self._ui.redraw()

    # -- inside ---------------------------------------------------------------------------------------

    def _row(self, i: int) -> Row:
        if not isinstance(i, int) or not 0 <= i < len(self.rows):
            raise ConfigError(f"no proposal {i!r}; there are {len(self.rows)}, counted from 0")
        return self.rows[i]

    def _open_row(self, i: int) -> Row:
        row, now = self._row(i), self.standing(i)
        if now.decided:
            raise OrderError(f"proposal {i} is already {now.word}; undo({i}) takes that back")
        return row

    def _keep(self, row: Row, loss: Loss) -> Loss:
        row.loss = loss
        return loss

    def _ended(self, error: BaseException | None, bar: Bar) -> None:
        self._job = None
        self._ui.measured(bar)
        if error is not None and not isinstance(error, Exception):
            error = HarnesslabError(f"stopped after {bar.done} of {bar.total} episodes; finished episodes are kept")
        if error is not None:
            self.show_error(error)
        self.release()

    def _overview_row(self, i: int, now: Standing, chosen: int | None) -> tuple[str | Markup, ...]:
        row = self.rows[i]
        proposal = row.proposal
        return (
            f"{i} (shown)" if i == chosen else str(i),
            markup.fill("<span class='hl-tag'>{}</span>{}", now.word, " edited" if row.changed else ""),
            markup.fill("{}<br>{}", proposal.name, proposal.kind),
            proposal.about,
            counted(len(proposal.prediction.flips), "task"),
            _measured(row.loss, now) or "not yet",
        )


def _measured(loss: Loss | None, now: Standing) -> str:
    """What was measured: here, whatever a person decided, else what is on record; empty where nothing was."""
    verdict = loss.judged if loss is not None else now.measured
    if verdict is None or verdict.counts is None:
        return ""
    before, after, tasks = verdict.counts
    return f"solved {before} → {after} of {counted(tasks, 'task')}, {verdict.decision}: {verdict.why}"


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
        self._editor = Editor(panel, self._edited, self._original, unconfined=panel.trainer.lab.unconfined)
        self._use, self._reset = self._editor.use, self._editor.reset
        self._text, self._text_error = self._editor.text, self._editor.said
        self._reason = panel.control(
            widgets.Text(description="Reason", placeholder="why you promote or reject it; stored in git")
        )
        self._reason.layout.width = "60%"
        self._bar = widgets.IntProgress(min=0, max=1)
        self._bar.layout.visibility = "hidden"
        self._measure = panel.button("Measure", "Play the gate tasks with and without it", self._start, "primary")
        self._promote = panel.button(
            "Promote", "Make it part of the baseline, with your reason", self._promoted, "success"
        )
        self._reject = panel.button("Reject", "Keep it as rejected, with your reason", self._rejected, "danger")
        self._undo = panel.button("Undo", "Undo the decision on this proposal", self._undone)
        # Not one of the panel's controls: it has to work while the panel is busy.
        self._cancel = widgets.Button(
            description="Cancel", tooltip="Stop measuring; finished episodes are kept", disabled=True
        )
        self._cancel.on_click(lambda _button: panel.cancel())
        panel.follow(self._choice, lambda _i: self._chosen())
        self.children: list[Any] = [
            self._table,
            self._choice,
            self._detail,
            self._editor.box,
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
            self._detail.value = page(markup.paragraph("The estimator has no proposals."))
            buttons = (self._measure, self._promote, self._reject, self._undo, self._use, self._reset)
            self._panel.only(dict.fromkeys(buttons, False))
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

    def _edited(self, text: str, path: str | None) -> None:
        self._panel.put_text(self._choice.value, text, path)

    def _original(self) -> None:
        row = self._panel.rows[self._choice.value]
        row.proposal, row.loss = row.original, None
        self._load_files()

    def _load_files(self) -> None:
        if self._choice.value is not None:
            self._editor.show(self._panel.rows[self._choice.value].proposal)
