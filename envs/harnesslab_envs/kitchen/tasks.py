"""The panels: which scenes make up each split."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from harnesslab.rollout.env import SPLITS, Split, Task
from harnesslab_envs.kitchen.scene import FAMILIES, Scene, kinds, make_scene

PER_FAMILY = 12
"""Tasks of each family in a split; each kind of thing comes up equally often, so no instruction is one task's own."""

FIRST_SEED = 2000
"""Scenes of lower seeds were looked at while the game was made, sealed ones too; version 2 draws afresh."""


@cache
def panel(split: Split) -> tuple[Task, ...]:
    """The tasks of a split, families in turn."""
    return _panels()[split]


def scene_of(task: Task) -> Scene:
    """The scene that a task names."""
    return make_scene(str(task.options["family"]), str(task.options["kind"]), task.seed)


@cache
def _panels() -> dict[Split, tuple[Task, ...]]:
    streams = {family: _fresh(family) for family in FAMILIES}
    return {
        split: tuple(
            _task(split, family, number, *next(streams[family])) for number in range(PER_FAMILY) for family in FAMILIES
        )
        for split in SPLITS
    }


def _fresh(family: str) -> Iterator[tuple[str, int]]:
    """(kind, seed), kinds in turn, no plan twice: splits differ in what is to be done and not in the seed alone."""
    known: set[tuple[str, ...]] = set()
    seeds = dict.fromkeys(kinds(family), FIRST_SEED)
    while True:
        for kind in seeds:
            while (plan := make_scene(family, kind, seeds[kind]).plan) in known:
                seeds[kind] += 1
            known.add(plan)
            yield kind, seeds[kind]


def _task(split: Split, family: str, number: int, kind: str, seed: int) -> Task:
    return Task(f"kitchen-{split}-{family}-{number:02d}", split, family, seed, {"family": family, "kind": kind})
