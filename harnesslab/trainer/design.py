"""How the episodes of an epoch are spent: many proposals at once, or one candidate at a time."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.errors import ConfigError
from harnesslab.trainer.proposal import Proposal


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """An epoch measures one proposal on the gate. The default."""


@dataclass(frozen=True, slots=True)
class Screening:
    """An epoch switches many proposals on and off at random on search tasks, and judges one bundle on the gate.

    ``proposals``: how many are screened at once. ``tasks``: search tasks (episodes) of a round; the panel is gone through in turn.
    The bundle holds every proposal that helps with a probability above ``helps``, and takes out what was promoted before and now
    helps with one below ``doubt``. It is judged in the last of ``patience`` rounds, or as soon as its effects come to ``surplus`` times the least gain that the criterion can
    resolve on the gate, where the criterion says what that is (:class:`~harnesslab.AnytimeTest` does). ``patience``: rounds without a bundle that differs from those judged before, after which
    a training ends. ``seed``: of the random sets; the same seed gives the same design.
    """

    proposals: int = 12
    tasks: int = 24
    helps: float = 0.75
    doubt: float = 0.1
    patience: int = 4
    surplus: float = 1.5
    seed: int = 0

    def __post_init__(self) -> None:
        for field, least in (("proposals", 1), ("tasks", 2), ("patience", 1)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"Screening: {field}={value!r:.40} must be a whole number of {least} or more")
        for field in ("helps", "doubt"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigError(f"Screening: {field}={value!r:.40} must be a probability, 0 to 1")
        if isinstance(self.surplus, bool) or not isinstance(self.surplus, int | float) or not 0 <= self.surplus < 1e9:
            raise ConfigError(f"Screening: surplus={self.surplus!r:.40} must be a number of 0 or more, such as 1.5")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise ConfigError(f"Screening: seed={self.seed!r:.40} must be a whole number")


Design = OneAtATime | Screening


def make_design(given: Design | None) -> Design:
    """The design that a trainer was given, or the default. Raises ConfigError for anything else."""
    if not isinstance(given, Design | None):
        raise ConfigError(f"design must be Screening(...) or OneAtATime(), not {given!r:.60}")
    return given if given is not None else OneAtATime()


def screening_of(design: Design) -> Screening:
    """The screening of a design; one with the defaults where it has none."""
    return design if isinstance(design, Screening) else Screening()


def exclusive(one: Proposal, other: Proposal) -> bool:
    """Whether two proposals cannot be switched on together: they change the same file, or one intervention's."""
    stems = [{path.rpartition(".")[0] for path in proposal.changes} for proposal in (one, other)]
    return bool(stems[0] & stems[1])


def halves(proposals: Sequence[Proposal], dice: random.Random) -> tuple[list[Proposal], list[Proposal]]:
    """A random set of the proposals and its complement, each proposal on either side with the same chance.

    Where exclusive ones meet on a side, the first of a random order stays and the other is off on both. Sizes are not fixed:
    sets that always held half of them would hide what all of them do together.
    """
    sides: tuple[list[Proposal], list[Proposal]] = ([], [])
    for proposal in dice.sample(list(proposals), len(proposals)):
        side = sides[dice.random() < 0.5]
        if not any(exclusive(proposal, other) for other in side):
            side.append(proposal)
    return sides


def fold_over(
    tasks: Sequence[str], proposals: Sequence[Proposal], *, seed: int, number: int
) -> dict[str, list[Proposal]]:
    """The proposals that are on in each task of round ``number``: in each pair of tasks a random set and its complement.

    A task without a partner gets a random set. The same arguments give the same design, whatever the order of the proposals.
    """
    ordered = sorted(proposals, key=lambda proposal: proposal.content)
    key = "/".join([str(seed), str(number), *tasks, *(proposal.content for proposal in ordered)])
    dice = random.Random(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))
    design: dict[str, list[Proposal]] = {}
    for first in range(0, len(tasks), 2):
        for task, chosen in zip(tasks[first : first + 2], halves(ordered, dice), strict=False):
            design[task] = chosen
    return design


def merged(proposals: Sequence[Proposal]) -> Mapping[str, str | None]:
    """The changes of several proposals that do not exclude each other."""
    return {path: text for proposal in proposals for path, text in proposal.changes.items()}


def bundle_of(proposals: Sequence[Proposal]) -> Proposal:
    """Several proposals as one, to be judged together; a single one is itself. Raises ConfigError for none, or exclusive ones."""
    if not proposals:
        raise ConfigError("a bundle needs at least one proposal")
    for place, one in enumerate(proposals):
        for other in proposals[:place]:
            if exclusive(one, other):
                raise ConfigError(f"{other.name} and {one.name} change the same file; a bundle takes one of them")
    if len(proposals) == 1:
        return proposals[0]
    first = proposals[0]
    names = [proposal.name for proposal in proposals]
    return Proposal(
        changes=merged(proposals),
        layer=first.layer,
        kind="bundle",
        name=f"bundle of {len(names)}",
        about=", ".join(names),
        evidence=tuple(item for proposal in proposals for item in proposal.evidence[:2]),
        estimator=first.estimator,
        parts=tuple(proposals),
    )
