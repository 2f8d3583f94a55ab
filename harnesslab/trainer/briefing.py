"""Briefs an estimator: puts together what it may know, and keeps its memo and what people sent back."""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from harnesslab.errors import ConfigError, EstimatorFault, OrderError, SkippedProposal
from harnesslab.lab import Lab
from harnesslab.ledger import now, whoami
from harnesslab.llm.meter import Meter
from harnesslab.plaintext import one_line
from harnesslab.redaction import scrub
from harnesslab.trainer.config import Settings
from harnesslab.trainer.estimators.ask import ask, wants_brief
from harnesslab.trainer.estimators.base import Estimator
from harnesslab.trainer.estimators.brief import MEMO_CHARS, Allowance, Brief, Comment, Remembers, asked, cut_memo
from harnesslab.trainer.failures import Failures
from harnesslab.trainer.hidden import Hidden
from harnesslab.trainer.history import hidden_ids, past_candidates, past_verdicts
from harnesslab.trainer.proposal import Proposal, Proposals

if TYPE_CHECKING:
    from harnesslab.trainer.screening import Screen

RULES = "program.md"
"""The file in a lab's folder with a person's rules for proposers."""
LINES = 200
"""Lines of progress that are kept."""
COMMENTS = 50
"""Proposals that were sent back and are told of, the latest ones."""
_PLACE, _MEMO, _COMMENTS = -2, "memo", "comments"
"""The journal's place for what proposers keep; its epochs count from 0, and -1 is the meter's."""


class Progress:
    """The latest lines that the estimator at work has said of itself. Knows nothing of the lab, since a brief leads to it."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=LINES)

    def tell(self, line: object) -> None:
        """Add a line; what is longer than 500 characters is cut."""
        self.lines.append(scrub(one_line(str(line)))[:500])


class Briefing:
    """For one trainer. ``stop`` is set to stop the estimator that is at work."""

    def __init__(self, lab: Lab, settings: Settings, meter: Meter):
        self._lab, self._settings, self._meter = lab, settings, meter
        self._last: Failures | None = None
        self.stop = threading.Event()
        self._progress = Progress()

    def ask(self, estimator: Estimator, failures: Failures, effects: Iterable[object] | None) -> Proposals:
        """What the estimator proposes; then it may rewrite the memo. Raises EstimatorFault."""
        self.stop.clear()
        self._progress.lines.clear()
        self._last = failures
        brief = self._brief(estimator, failures, effects)
        proposals = ask(estimator, brief)
        self._remember(estimator, brief.with_diagnosis(proposals.diagnosis))
        return proposals

    def remember(self, estimator: Estimator, effects: Iterable[object] | None) -> None:
        """After a verdict: let the estimator rewrite the memo. Does nothing before it has proposed in this kernel."""
        if self._last is not None and isinstance(estimator, Remembers):
            self._remember(estimator, self._brief(estimator, self._last, effects))

    @property
    def said(self) -> tuple[str, ...]:
        """The latest lines of the estimator's progress, oldest first; empty where it has said nothing since it was asked."""
        return tuple(self._progress.lines)

    @property
    def memo(self) -> str:
        """What is remembered."""
        kept = self._lab.runs.journal_get(_PLACE, _MEMO, "") if self._lab.recorded else ""
        return kept if isinstance(kept, str) else ""

    @memo.setter
    def memo(self, text: str) -> None:
        if not isinstance(text, str):
            raise ConfigError(f"the memo is text, not {type(text).__name__}")
        self._lab.runs.journal_put(_PLACE, _MEMO, cut_memo(text))

    def send_back(self, proposal: Proposal, comment: str, who: str) -> None:
        """Note a comment on a proposal. Raises ConfigError."""
        if not isinstance(proposal, Proposal):
            raise ConfigError(f"send_back takes one Proposal, not {type(proposal).__name__}: for example proposals[0]")
        if not isinstance(comment, str) or not comment.strip():
            raise ConfigError("send_back needs a comment: say what should be different")
        new = {
            "name": proposal.name,
            "changes": dict(proposal.changes),
            "content": proposal.content,
            "comment": comment.strip()[:MEMO_CHARS],
            "who": who,
            "when": now(),
        }

        def add(notes: Mapping[str, Any]) -> Mapping[str, Any]:
            return {_COMMENTS: [*_list(notes.get(_COMMENTS)), new][-COMMENTS:]}

        self._lab.runs.journal_swap(_PLACE, add)

    def comments(self) -> tuple[Comment, ...]:
        """The proposals that were sent back, oldest first."""
        kept = _list(self._lab.runs.journal_get(_PLACE, _COMMENTS)) if self._lab.recorded else []
        return tuple(
            Comment(str(item["name"]), item["changes"], str(item["comment"]), str(item["who"]), str(item["content"]))
            for item in kept
            if isinstance(item, dict) and {"name", "changes", "comment", "who", "content"} <= item.keys()
        )

    def _remember(self, estimator: Estimator, brief: Brief) -> None:
        if not isinstance(estimator, Remembers):
            return
        try:
            self.memo = asked(estimator, "remember", brief)
        except EstimatorFault as error:  # what it proposed is not lost for it
            warnings.warn(f"the memo stays as it was: {error}", SkippedProposal, stacklevel=3)

    def _brief(self, estimator: Estimator, failures: Failures, effects: Iterable[object] | None) -> Brief:
        lab = self._lab
        if failures.run.split != "search":
            raise OrderError(
                f"run {failures.run.id} was played on the {failures.run.split} split; proposers see search"
            )
        hidden = Hidden(hidden_ids(lab))
        return Brief(
            # Not the trainer's own object: through that one the lab and its gate tasks could be reached.
            failures=Failures(failures.run),
            harness=lab.harness(),
            history=past_candidates(lab, hidden) if wants_brief(estimator) else past_verdicts(lab.repo, hidden),
            meter=Allowance(self._meter),
            deadline=time.monotonic() + self._settings.proposer_deadline,
            memo=hidden.mask(self.memo),
            comments=tuple(
                Comment(c.name, c.changes, hidden.mask(c.comment), c.who, c.content) for c in self.comments()
            ),
            effects=tuple(_plain(effect) for effect in effects or () if is_dataclass(effect)),
            rules=self._rules(),
            trust=lab.trust,
            tell=self._progress.tell,
            stop=self.stop,
        )

    def _rules(self) -> str:
        path = self._lab.path / RULES
        try:
            if path.is_file() and not path.is_symlink():
                return path.read_bytes()[:MEMO_CHARS].decode("utf-8", "replace")
        except OSError as error:
            raise EstimatorFault(f"{path} cannot be read: {error.strerror}") from error
        return ""


class Briefed:
    """What a trainer offers of its briefing: the memo, what a person sends back, and the stop button."""

    lab: Lab
    estimator: Estimator
    screened: Screen | None
    _briefing: Briefing

    def remember(self) -> None:
        """Let the estimator rewrite the memo, if it keeps one; the epochs do so after each verdict. Raises EstimatorFault."""
        self._briefing.remember(self.estimator, self.screened)

    @property
    def memo(self) -> str:
        """The estimator's memo: what it is to remember between epochs and kernels, at most 150 lines. You may rewrite it."""
        return self._briefing.memo

    @memo.setter
    def memo(self, text: str) -> None:
        self._briefing.memo = text

    def send_back(self, proposal: Proposal, comment: str, *, who: str | None = None) -> None:
        """Give a proposal back to the estimator with a comment, which it sees when it proposes next; nothing is measured.

        Raises ConfigError without a comment.
        """
        self._briefing.send_back(proposal, comment, who or whoami(self.lab.path))

    def stop(self) -> None:
        """Stop the proposer that is at work in another thread; what it had not finished is dropped."""
        self._briefing.stop.set()


def _plain(effect: Any) -> dict[str, Any]:
    return {
        name: value
        for name, value in asdict(effect).items()
        if isinstance(value, str | int | bool) or (isinstance(value, float) and math.isfinite(value))
    }


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
