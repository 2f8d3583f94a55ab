"""What a miner yields: a kind, a short ladder of parameters for it, and the evidence."""

from __future__ import annotations

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
    """One step of one episode that speaks for an idea; ``what`` is shown to people."""

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
        """Raises ConfigError for an unknown label, layer or kind, or a field of the wrong type."""
        of = f"the idea {self.layer}/{self.stem} of a miner has"
        for name, value in (("stem", self.stem), ("about", self.about)):
            if not isinstance(value, str):
                raise ConfigError(f"{of} a {name} that is a {type(value).__name__}, not text")
        for name, items, cls in (("variants", self.variants, Variant), ("clues", self.clues or (), Clue)):
            if not isinstance(items, tuple | list) or not all(isinstance(item, cls) for item in items):
                raise ConfigError(f"{of} {name} that are not a tuple of {cls.__name__}")
        if isinstance(self.labels, str):
            raise ConfigError(f"{of} labels {self.labels!r:.60}; they must be a tuple")
        for what, value, known in (
            *(("label", label, LABELS) for label in self.labels),
            ("layer", self.layer, LAYERS),
            ("kind", self.kind, known_kinds()),
        ):
            if value not in known:
                raise ConfigError(f"{of} an unknown {what} {value!r:.60}; known are {', '.join(known)}")
        strength: Any = self.strength
        if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0 <= strength <= 1:
            raise ConfigError(f"{of} the strength {strength!r:.60}; it must be a share between 0 and 1")

    @property
    def name(self) -> str:
        """The intervention's name."""
        return f"{self.layer}/{self.stem}"


Miner = Callable[["View"], Iterable[Idea]]
"""Reads a View and yields ideas, in a fixed order; nothing where the evidence is missing."""
