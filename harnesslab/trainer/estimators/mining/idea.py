"""What a miner hands out: a built-in kind, a short ladder of parameters for it, and the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harnesslab.errors import ConfigError
from harnesslab.harness.base import LAYERS, Layer
from harnesslab.harness.kind import known_kinds
from harnesslab.rollout.records import Episode
from harnesslab.rollout.taxonomy import LABELS, Label

if TYPE_CHECKING:
    from harnesslab.trainer.estimators.mining.view import View


@dataclass(frozen=True, slots=True)
class Clue:
    """One step of one episode that speaks for an idea; ``what`` is told to a person."""

    episode: Episode
    step: int
    what: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One rung of an idea's ladder: the parameters and the trigger in the YAML file."""

    params: Mapping[str, Any] = field(default_factory=dict)
    when: Mapping[str, Any] | None = None
    about: str = ""
    """What this rung does, where that is not what the idea says."""


@dataclass(frozen=True, slots=True)
class Idea:
    """A kind that could help.

    ``labels`` are the bottlenecks that it is meant for: only failures with one of them are predicted to flip.
    ``strength`` is the share of the episodes it addresses that it is expected to save when the evidence is there: a
    prior, the same for every environment; verdicts lower it. ``variants`` are tried in order, the next one after the
    one before was turned down. With ``clues`` of None the evidence is found by replay (see
    :mod:`~harnesslab.trainer.estimators.mining.replay`); an idea that never would have fired is dropped.
    ``single``: one intervention of the kind is enough for a harness.
    """

    kind: str
    layer: Layer
    stem: str
    about: str
    variants: tuple[Variant, ...]
    labels: tuple[Label, ...]
    strength: float
    clues: tuple[Clue, ...] | None = None
    single: bool = True

    def __post_init__(self) -> None:
        """Raises ConfigError for a label, layer, kind or strength that there is not."""
        of = f"the idea {self.layer}/{self.stem} of a miner has"
        for what, value, known in (
            *(("label", label, LABELS) for label in self.labels),
            ("layer", self.layer, LAYERS),
            ("kind", self.kind, known_kinds()),
        ):
            if value not in known:
                raise ConfigError(f"{of} an unknown {what} {value!r:.60}; known are {', '.join(known)}")
        if not (math.isfinite(self.strength) and self.strength >= 0):
            raise ConfigError(f"{of} the strength {self.strength}; it must be a number of 0 or more")

    @property
    def name(self) -> str:
        """The intervention's name."""
        return f"{self.layer}/{self.stem}"


Miner = Callable[["View"], Iterable[Idea]]
"""Reads a View and yields ideas, in a fixed order; nothing where the evidence is missing."""
