"""A proposal: one intervention as changed files, the evidence behind it and what it should do."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnesslab.harness.base import LAYERS
from harnesslab.markup import LIMIT, block, fill, items, paragraph, table
from harnesslab.plaintext import clip, counted

if TYPE_CHECKING:
    from harnesslab.trainer.desk import Desk


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place in the record that speaks for a proposal; ``episode`` is its number in the store."""

    task: str
    episode: int | None
    step: int
    what: str

    def to_json(self) -> dict[str, Any]:
        """All fields as plain JSON."""
        return {"task": self.task, "episode": self.episode, "step": self.step, "what": self.what}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What should happen if the proposal is right.

    ``flips``: search tasks that should be solved; ``trigger``: the intervention that must fire. The rest are conditions that any panel can check
    (:mod:`harnesslab.trainer.predictions`): ``fires``, the share of tasks on which it fires; ``cause``, the cause of failure that disappears, a
    label or a cause as :meth:`Trainer.diagnose` names them; ``gain``, the change of the solve rate. Shares are between 0 and 1, the
    gain between -1 and 1.
    """

    flips: tuple[str, ...] = ()
    trigger: str = ""
    fires: float | None = None
    cause: str = ""
    gain: float | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields as plain JSON; conditions that are not predicted are left out."""
        more = {"fires": self.fires, "cause": self.cause or None, "gain": self.gain}
        return {"flips": list(self.flips), "trigger": self.trigger} | {k: v for k, v in more.items() if v is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Prediction:
        """The inverse of :meth:`to_json`."""
        return cls(
            tuple(data.get("flips", ())),
            data.get("trigger", ""),
            data.get("fires"),
            data.get("cause", ""),
            data.get("gain"),
        )

    def conditions(self) -> list[str]:
        """The conditions in words."""
        said = [f"fires on {100 * self.fires:.0f}% of tasks"] if self.fires is not None else []
        said += [f"failures by {self.cause!r} disappear"] if self.cause else []
        return said + ([f"solve rate {100 * self.gain:+.0f} points"] if self.gain is not None else [])


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate before it is a commit.

    ``changes`` maps paths in the lab to their new text; ``None`` deletes the file. ``name`` is the intervention's
    name (``layer/stem``). ``about`` is one sentence for the log of the branch.
    """

    changes: Mapping[str, str | None]
    layer: str
    kind: str
    name: str
    about: str
    evidence: tuple[Evidence, ...] = ()
    prediction: Prediction = field(default_factory=Prediction)
    estimator: str = "manual"
    parts: tuple[Proposal, ...] = ()
    """The proposals that this one is a bundle of; each becomes a commit."""

    @property
    def content(self) -> str:
        """SHA-256 of the changes: equal for proposals that do the same to a harness, whatever is said about them."""
        text = json.dumps(sorted(self.changes.items()), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def diff(self, baseline: Mapping[str, bytes] | None = None) -> str:
        """The change as a unified diff against the baseline's files (all new where none are given)."""
        old = {path: data.decode("utf-8", "replace") for path, data in (baseline or {}).items() if path in self.changes}
        return "".join(_diff_file(path, old.get(path), self.changes[path]) for path in sorted(self.changes))

    def apply(self, baseline: Mapping[str, bytes]) -> dict[str, bytes]:
        """The files of the candidate, ready for ``load_harness``: those of the baseline with the changes made."""
        new = {path: text.encode() for path, text in self.changes.items() if text is not None}
        kept = {path: data for path, data in baseline.items() if path not in self.changes}
        return dict(sorted({**kept, **new}.items()))

    def to_json(self) -> dict[str, Any]:
        """Everything as plain JSON, ``content`` included; :meth:`from_json` is the inverse."""
        return {
            "changes": dict(self.changes),
            "layer": self.layer,
            "kind": self.kind,
            "name": self.name,
            "about": self.about,
            "evidence": [item.to_json() for item in self.evidence],
            "prediction": self.prediction.to_json(),
            "estimator": self.estimator,
            "content": self.content,
        } | ({"parts": [part.to_json() for part in self.parts]} if self.parts else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Proposal:
        """A proposal from the form that :meth:`to_json` gives."""
        prediction = data.get("prediction") or {}
        return cls(
            changes=dict(data["changes"]),
            layer=data["layer"],
            kind=data["kind"],
            name=data["name"],
            about=data.get("about", ""),
            evidence=tuple(Evidence(**item) for item in data.get("evidence", ())),
            prediction=Prediction.from_json(prediction),
            estimator=data.get("estimator", "manual"),
            parts=tuple(cls.from_json(part) for part in data.get("parts", ())),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}): {clip(self.about, 120)}"

    def __repr__(self) -> str:
        lines = [str(self), *(f"  evidence: {line}" for line in self._evidence())]
        if self.prediction.flips:
            lines.append(f"  should flip {len(self.prediction.flips)}: {clip(', '.join(self.prediction.flips), 100)}")
        if self.prediction.trigger:
            lines.append(f"  must fire: {self.prediction.trigger}")
        if said := self.prediction.conditions():
            lines.append(f"  predicts: {'; '.join(said)}")
        return "\n".join([*lines, self.diff()])

    def _repr_html_(self) -> str:
        head = fill("<p><b>{}</b> ({}, {}): {}</p>", self.name, self.kind, self.estimator, self.about, limit=LIMIT)
        flips = clip(", ".join(self.prediction.flips), 200) or "nothing in particular"
        said = "".join(f"; {condition}" for condition in self.prediction.conditions())
        predicted = paragraph(f"should flip {flips}; must fire: {self.prediction.trigger or 'nothing'}{said}")
        return str(head + predicted + items(self._evidence()) + block(self.diff()))

    def _evidence(self) -> list[str]:
        rest = len(self.evidence) - SHOWN
        return [f"{_place(item)}: {clip(item.what, 100)}" for item in self.evidence[:SHOWN]] + (
            [f"... and {rest} more"] if rest > 0 else []
        )


SHOWN = 5
"""Pieces of evidence that a proposal shows of itself; the rest is counted."""


PREDICTED = "predicted flips"
"""The number of tasks that should flip, which every list of proposals shows."""


class Proposals(Sequence[Proposal]):
    """A few proposals, best first by ``ranked_by``. ``refused`` holds (name, reason) of those that were turned down before measuring.

    ``edited`` are files of the lab's folder that differ from the baseline and that no proposal carries.
    """

    def __init__(
        self,
        items: Sequence[Proposal] = (),
        refused: Sequence[tuple[str, str]] = (),
        *,
        ranked_by: str = PREDICTED,
    ):
        """Ranked by predicted flips, the items are put in that order; for another ``ranked_by`` they stay as given."""
        self.ranked_by = ranked_by
        self._items = tuple(best_first(items) if ranked_by == PREDICTED else items)
        self.refused = tuple(refused)
        self.edited: tuple[str, ...] = ()
        self.diagnosis = ""
        """What the estimator said is wrong, in its own words (untrusted text: escape it)."""
        self.trainer: Desk[Proposal, Any] | None = None
        """Who measures and decides on them; set by :meth:`Trainer.propose`."""

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Proposal]:
        return iter(self._items)

    def __getitem__(self, index: Any) -> Any:
        found = self._items[index]
        if not isinstance(index, slice):
            return found
        some = Proposals(found, self.refused, ranked_by=self.ranked_by)
        some.trainer, some.edited, some.diagnosis = self.trainer, self.edited, self.diagnosis
        return some

    def leave_out(self, paths: Sequence[str]) -> None:
        """Note which of the edited ``paths`` no proposal carries, so that nobody waits for them to be measured."""
        carried = {path for proposal in self for path in proposal.changes}
        self.edited = tuple(path for path in paths if path not in carried)

    def _head(self) -> str:
        other = f", ranked by {self.ranked_by}" if self.ranked_by != PREDICTED else ""
        return counted(len(self), "proposal") + other

    def _remarks(self) -> list[str]:
        remarks = [f"diagnosis: {clip(self.diagnosis, 300)}"] if self.diagnosis else []
        remarks += [f"refused {name}: {clip(reason, 120)}" for name, reason in self.refused]
        if self.edited:
            remarks.append(
                f"edited, but not proposed: {clip(', '.join(self.edited), 200)}; "
                "ManualEstimator.add_files(lab.edits()) makes it a proposal"
            )
        return remarks

    def __repr__(self) -> str:
        lines = [self._head()]
        lines += [f"  [{i}] {p}; should flip {len(p.prediction.flips)}" for i, p in enumerate(self)]
        return "\n".join([*lines, *(f"  {remark}" for remark in self._remarks())])

    def _repr_html_(self) -> str:
        head = ("", "layer", "kind", "name", "about", "should flip", "evidence")
        rows = [
            (i, p.layer, p.kind, p.name, p.about, len(p.prediction.flips), len(p.evidence)) for i, p in enumerate(self)
        ]
        return str(table(head, rows, caption=self._head()) + items(self._remarks(), limit=400))


def best_first(proposals: Iterable[Proposal]) -> list[Proposal]:
    """By what is shown: the number of tasks that should flip. Equal ones stay in the order that the estimator gave."""
    return sorted(proposals, key=lambda proposal: -len(proposal.prediction.flips))


def layer_of(path: str) -> str:
    """The layer that a harness file belongs to: its first folder, or ``base`` for files at the top."""
    head = path.split("/", 1)[0] if "/" in path else ""
    return head if head in LAYERS else "base"


def _diff_file(path: str, old: str | None, new: str | None) -> str:
    before = [] if old is None else old.splitlines(keepends=True)
    after = [] if new is None else new.splitlines(keepends=True)
    names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
    lines = difflib.unified_diff(before, after, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _place(evidence: Evidence) -> str:
    number = f", episode {evidence.episode}" if evidence.episode is not None else ""
    return f"{clip(evidence.task, 40)}{number}, step {evidence.step}"
