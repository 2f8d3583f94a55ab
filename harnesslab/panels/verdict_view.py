"""The verdict panel: what one measurement found, and a person's decision on it."""

from __future__ import annotations

from harnesslab.analysis.show import verdict_html
from harnesslab.errors import OrderError
from harnesslab.extras import comes_with
from harnesslab.ledger import OPEN, Candidate, Choice, read_verdict, reason_given, who_decided
from harnesslab.markup import Markup, page, paragraph
from harnesslab.panels.base import Panel
from harnesslab.trainer.desk import Desk
from harnesslab.trainer.loss import Loss
from harnesslab.trainer.proposal import Proposal


class VerdictPanel(Panel):
    """Shows a loss. ``promote(reason=...)``, ``reject(reason=...)`` and ``undo()`` do what the buttons do."""

    def __init__(self, loss: Loss, trainer: Desk[Proposal, Loss]):
        with comes_with("lab"):
            import ipywidgets as widgets

        super().__init__()
        self.loss, self.trainer = loss, trainer
        self._view = widgets.HTML()
        self._reason = self.control(
            widgets.Text(description="Reason", placeholder="why you promote or reject it; stored in git")
        )
        self._reason.layout.width = "60%"
        self._promote = self.button(
            "Promote", "Make it part of the baseline, with your reason", self._promoted, "success"
        )
        self._reject = self.button("Reject", "Keep it as rejected, with your reason", self._rejected, "danger")
        self._undo = self.button("Undo", "Undo the decision", self._take_back)
        buttons = widgets.HBox([self._promote, self._reject, self._undo])
        self.box.children = [self._view, self._reason, buttons, self.error]
        self.redraw()

    def promote(self, *, reason: str) -> bool:
        """Promote the candidate; returns whether the baseline moved. Against the criterion it is recorded as an override."""
        return bool(self.exclusive(lambda: self._decide("promote", reason)))

    accept = promote

    def reject(self, *, reason: str) -> None:
        """Turn the candidate down; it stays under its rejected ref with the reason."""
        self.exclusive(lambda: self._decide("reject", reason))

    def undo(self) -> None:
        """Take the decision on this candidate back."""
        self.exclusive(self._take_back)

    @property
    def candidate(self) -> Candidate:
        """The candidate as git knows it now."""
        return self.trainer.lab.repo.candidate(self.loss.candidate)

    def static(self) -> Markup:
        return page(self._body())

    def plain(self) -> str:
        lines = [repr(self.loss), self._standing()]
        for flip in self.loss.verdict.flips:
            became = "now solved" if flip.after else "now failed"
            lines.append(f"  {flip.task}: {became}{' (incidental: nothing new fired)' if flip.incidental else ''}")
        return "\n".join(lines)

    def redraw(self) -> None:
        self._view.value = page(self._body())
        acts = self.trainer.lab.ledger.possible(self.candidate)
        buttons = {self._promote: "promote", self._reject: "reject", self._undo: "undo"}
        self.only({button: act in acts for button, act in buttons.items()})

    def _body(self) -> Markup:
        stored = read_verdict(self.candidate.verdict) or self.loss.verdict
        return paragraph(self._standing(), 500, mark=True) + verdict_html(stored, title=self.loss.proposal.name)

    def _standing(self) -> str:
        candidate = self.candidate
        decider = who_decided(candidate.verdict)
        return f"{candidate.state.capitalize()} by {decider}." if decider else "Nobody has decided yet."

    def _promoted(self) -> None:
        self._decide("promote", self._reason.value)
        self._reason.value = ""

    def _rejected(self) -> None:
        self._decide("reject", self._reason.value)
        self._reason.value = ""

    def _decide(self, decision: Choice, reason: str) -> bool:
        if self.candidate.state not in OPEN:
            raise OrderError(f"the candidate is already {self.candidate.state}; undo() takes that back")
        reason = reason_given(reason)
        act = self.trainer.promote if decision == "promote" else self.trainer.reject
        return act(self.loss, reason)

    def _take_back(self) -> None:
        self.trainer.undo(self.loss.candidate)
