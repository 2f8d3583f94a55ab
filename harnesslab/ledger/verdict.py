"""The stored record of a judgement: what git notes hold and panels show. Plain JSON both ways."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from harnesslab.ledger.words import CHOICE, OUTCOME, Choice
from harnesslab.plaintext import counted
from harnesslab.store import STATES, Candidate, State


@dataclass(frozen=True, slots=True)
class Flip:
    """A task whose outcome changed. ``incidental``: nothing new fired on it, so the change is not explained."""

    task: str
    before: bool
    after: bool
    incidental: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the keys ``from`` and ``to``."""
        return {"task": self.task, "from": self.before, "to": self.after, "incidental": self.incidental}


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decided: a ``person`` or the ``criterion``, by name, and whether it was an override."""

    kind: Literal["criterion", "person"]
    name: str
    override: bool = False

    def __str__(self) -> str:
        return self.name + (" (override)" if self.override else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A candidate judged against its baseline.

    ``value`` is the loss; below 0 selects the candidate, infinite means that a solved task was lost.
    ``tasks`` counts the tasks that could be scored on both sides, and ``solved`` holds the ids of those that ``baseline``
    and ``candidate`` solved. ``metrics`` are pairs (baseline, candidate), means of episodes.
    ``decided_by`` is ``criterion`` or ``person``, and ``who`` the person, or the optimizer that decided against the criterion; ``overrides`` is the state that a person decided against, if any.
    ``predictions``: each condition that was predicted (``fires``, ``cause``, ``gain``) with ``predicted``, ``seen`` and whether it ``held``.
    ``settled_early``: the candidate was stopped because nothing could change the verdict any more.
    """

    criterion: str
    value: float
    decision: Choice
    baseline: str
    candidate: str
    solved: Mapping[str, list[str]]
    flips: tuple[Flip, ...] = ()
    metrics: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, float] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    tasks: int = 0
    settled_early: bool = False
    decided_by: Literal["criterion", "person"] = "criterion"
    who: str = ""
    when: str = ""
    why: str = ""
    overrides: State | None = None
    predictions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def override(self) -> bool:
        """Whether a person decided against the verdict that was on record."""
        return self.overrides is not None

    @property
    def gain(self) -> int:
        """Tasks solved by the candidate less those solved by the baseline, on the tasks both played."""
        return len(self.solved["candidate"]) - len(self.solved["baseline"])

    @property
    def counts(self) -> tuple[int, int, int] | None:
        """Tasks solved (before, after, of how many); None where nothing was measured."""
        return (len(self.solved["baseline"]), len(self.solved["candidate"]), self.tasks) if self.tasks > 0 else None

    @property
    def could_show(self) -> str:
        """The least gain that this measurement could have shown, and how often its criterion is wrong there, in one sentence; "" if not on record."""
        if "resolvable" not in self.statistics:
            return ""
        least, false = self.statistics["resolvable"], self.statistics.get("false_promotions")
        if isinstance(least, int) and not isinstance(least, bool) and least > 0:
            points = (
                f" ({100 * least / self.tasks:.0f} points)"
                if not self.settled_early and 0 < least <= self.tasks
                else ""
            )
            said = f"could show a gain of {counted(least, 'task')}{points} or more"
        else:
            said = "could show no gain at all"
        if not isinstance(false, int | float) or isinstance(false, bool):
            return said
        return f"{said}; up to {100 * false:.0f}% of changes without effect are promoted on such a panel"

    @property
    def decider(self) -> Decider:
        """Who decided, or who would: the criterion, until a person does."""
        if self.decided_by == "person":
            return Decider("person", self.who or "a person", self.override)
        return Decider("criterion", self.criterion)

    def by_person(self, decision: Choice, who: str, why: str) -> Verdict:
        """The same measurement, decided by a person; an override where this verdict says otherwise."""
        against = OUTCOME[self.decision] if decision != self.decision else None
        return replace(
            self, decision=decision, decided_by="person", who=who, why=why, when=now(), overrides=against
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; an infinite value becomes ``null``, since JSON has no infinity."""
        data = asdict(self)
        data["value"] = None if math.isinf(self.value) else self.value
        data["flips"] = [flip.to_json() for flip in self.flips]
        data["metrics"] = {name: list(pair) for name, pair in self.metrics.items()}
        data["override"] = self.override
        if not self.predictions:
            del data["predictions"]
        # The store files candidates by these three.
        data["delta"], data["reason"] = self.gain, self.why
        data["decided_at"] = datetime.fromisoformat(self.when).timestamp() if self.when else None
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        """The inverse of :meth:`to_json`; unknown keys are ignored.

        Anybody can write a git note, so a field of another shape than ours is read as empty.
        """
        solved, value = _facts(data.get("solved")), data.get("value")
        decision = next((choice for choice in OUTCOME if choice == data.get("decision")), None)
        override = data.get("override") is True
        overrides: State | None = next((state for state in STATES if state == data.get("overrides")), None)
        if override and overrides is None:
            # Early records say that it was an override, but not of what.
            overrides = "rejected" if decision == "promote" else "promoted"
        return cls(
            criterion=_words(data.get("criterion")),
            value=math.inf if value is None else float(value) if _is_number(value) else math.nan,
            decision=decision or CHOICE.get(_words(data.get("state")), "undecided"),
            baseline=_words(data.get("baseline")),
            candidate=_words(data.get("candidate")),
            solved={side: [str(task) for task in _items(solved.get(side))] for side in ("baseline", "candidate")},
            flips=tuple(
                Flip(
                    str(flip["task"]), flip.get("from") is True, flip.get("to") is True, flip.get("incidental") is True
                )
                for flip in _items(data.get("flips"))
                if isinstance(flip, Mapping) and "task" in flip
            ),
            metrics={
                name: (pair[0], pair[1])
                for name, pair in _facts(data.get("metrics")).items()
                if len(_items(pair)) == 2 and all(map(_is_number, pair))
            },
            statistics=_facts(data.get("statistics")),
            cost={name: amount for name, amount in _facts(data.get("cost")).items() if _is_number(amount)},
            identity=_facts(data.get("identity")),
            runs={side: run for side, run in _facts(data.get("runs")).items() if isinstance(run, str)},
            tasks=data["tasks"] if _is_number(data.get("tasks")) and isinstance(data["tasks"], int) else 0,
            settled_early=data.get("settled_early") is True,
            decided_by="person" if override or data.get("decided_by") == "person" else "criterion",
            who=_words(data.get("who")),
            when=_time(data.get("when")),
            why=_words(data.get("why")),
            overrides=overrides,
            predictions={
                name: said for name, said in _facts(data.get("predictions")).items() if isinstance(said, Mapping)
            },
        )


def read_verdict(note: Verdict | Mapping[str, Any] | None) -> Verdict | None:
    """The verdict in a note (or its JSON); None where nobody has judged."""
    if note is None or isinstance(note, Verdict):
        return note
    return Verdict.from_json(note) if _words(note.get("criterion")) else None


def persons_verdict(candidate: Candidate, decision: Choice, who: str, why: str) -> Verdict:
    """A person's verdict on a candidate: on its measurement where one is on record, else on nothing but their word."""
    recorded = read_verdict(candidate.verdict)
    if recorded is not None:
        return recorded.by_person(decision, who, why)
    return Verdict(
        criterion="none",
        value=0.0,
        decision=decision,
        baseline=candidate.parent,
        candidate=candidate.commit,
        solved={"baseline": [], "candidate": []},
        decided_by="person",
        who=who,
        when=now(),
        why=why,
        overrides=candidate.state if candidate.state == "rejected" else None,
    )


def who_decided(note: Mapping[str, Any] | None) -> Decider | None:
    """Who decided, from a verdict's JSON or a note; None while nobody has. Nothing in a note is trusted."""
    if not note or note.get("state") in ("pending", "measured"):
        return None
    override = note.get("override") is True
    if override or note.get("decided_by") == "person":
        return Decider("person", str(note.get("who") or "a person"), override)
    # An optimizer that decided against the criterion is named as the one who did.
    return Decider("criterion", str(note.get("who") or note.get("criterion") or "the criterion"))


def solved_counts(note: Mapping[str, Any] | None) -> tuple[int, int, int] | None:
    """:attr:`Verdict.counts` of a verdict's JSON or a note."""
    verdict = read_verdict(note)
    return verdict.counts if verdict is not None else None


def now() -> str:
    """The present time, UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _words(value: object) -> str:
    return value if isinstance(value, str) else ""


def _time(value: object) -> str:
    text = _words(value)
    try:
        datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return ""
    return text


def _facts(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
