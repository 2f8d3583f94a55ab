"""The stored record of a judgement: what git notes hold and panels show. Plain JSON both ways."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

Choice = Literal["promote", "reject", "undecided"]


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
class Verdict:
    """A candidate judged against its baseline.

    ``value`` is the loss; below 0 selects the candidate, infinite means that a solved task was lost.
    ``solved`` holds task ids for ``baseline`` and ``candidate``. ``metrics`` are pairs (baseline, candidate).
    ``decided_by`` is ``criterion`` or ``person``; ``override`` says that a person went against the criterion.
    ``settled_early``: the candidate was stopped since nothing could change the verdict any more.
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
    override: bool = False

    @property
    def gain(self) -> int:
        """Tasks solved by the candidate less those solved by the baseline, on the tasks both played."""
        return len(self.solved["candidate"]) - len(self.solved["baseline"])

    def by_person(self, decision: Choice, who: str, why: str) -> Verdict:
        """The same measurement, decided by a person. An override when the criterion said otherwise."""
        return replace(
            self,
            decision=decision,
            decided_by="person",
            who=who,
            why=why,
            when=now(),
            override=decision != self.decision,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; an infinite value becomes ``null``, since JSON has no infinity."""
        data = asdict(self)
        data["value"] = None if math.isinf(self.value) else self.value
        data["flips"] = [flip.to_json() for flip in self.flips]
        data["metrics"] = {name: list(pair) for name, pair in self.metrics.items()}
        # The store files candidates by these three.
        data["delta"], data["reason"] = self.gain, self.why
        data["decided_at"] = datetime.fromisoformat(self.when).timestamp() if self.when else None
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        """The inverse of :meth:`to_json`; unknown keys are ignored."""
        values = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        values["value"] = math.inf if values.get("value") is None else float(values["value"])
        values["flips"] = tuple(
            Flip(flip["task"], flip["from"], flip["to"], flip["incidental"]) for flip in values.get("flips", ())
        )
        values["metrics"] = {name: (pair[0], pair[1]) for name, pair in values.get("metrics", {}).items()}
        return cls(**values)


def now() -> str:
    """The present time, UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
