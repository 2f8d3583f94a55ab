"""A table of plants: each way to be not the same twice is found by `check_env` or by `certify`, and a declared one is masked."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import os
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from harnesslab.errors import ConfigError
from harnesslab.harness import Pipeline, load_folder
from harnesslab.rollout.certify import Fork, certify
from harnesslab.rollout.episode import play
from harnesslab.testing import check_env
from tests.conftest import always
from tests.test_testing import World
from tests.worlds import STARTER, CorridorWorld

COUNT = itertools.count()


def said(text: Callable[[], str]) -> Callable[[], World]:
    """A world whose every observation ends with the text."""
    return lambda: World(lambda _env, result: (f"{result[0]} {text()}", *result[1:]))


def public(**change: Callable[[], Any]) -> Callable[[], World]:
    def alter(_env: Any, result: Any) -> Any:
        info = result[-1]
        changed = {name: value() for name, value in change.items()}
        return (*result[:-1], {**info, "public": {**info["public"], **changed}})

    return lambda: World(alter)


def graded(solved: Callable[[], bool]) -> Callable[[], World]:
    def alter(_env: Any, result: Any) -> Any:
        info = result[-1]
        return (
            *result[:-1],
            {**info, "private": {**info["private"], "solved": info["private"]["solved"] and solved()}},
        )

    return lambda: World(alter)


clock = said(lambda: f"It is {time.time():.0f}.")
clock_ns = said(lambda: f"It is {time.time_ns() // 10**9}.")
hour = said(lambda: time.strftime("%H:%M"))
date = said(lambda: datetime.date.today().isoformat())
weekday = said(lambda: datetime.datetime.now().strftime("%A"))
year = said(lambda: str(time.localtime().tm_year))
hash_order = said(lambda: " ".join({"red", "green", "blue", "white", "black"}))
hash_value = said(lambda: str(hash("word") % 1000))
process = said(lambda: f"pid {os.getpid()}")
admissible = public(admissible=lambda: ["look", f"open {next(COUNT)}"])
shuffled = public(admissible=lambda: random.sample(["look", "open red", "open blue", "open green"], 4))
grading = graded(lambda: random.random() < 0.5)
counter = said(lambda: f"You are visitor {next(COUNT)}.")
address = said(lambda: f"at {id(object()):#x} {next(COUNT)}")

PLANTS = ["clock", "clock_ns", "hour", "date", "weekday", "year", "hash_order", "hash_value", "process", "admissible", "shuffled",
          "grading", "counter", "address"]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS)
def test_check_env_finds_it(plant: str) -> None:
    report = check_env(f"{__name__}:{plant}")
    found = {finding.check for finding in report.findings}
    assert found & {"repeat", "processes", "reset"}, report
    if plant in ("date", "weekday", "year", "hour"):
        assert "clock a year ahead" in str(report)


class Altered(CorridorWorld):
    """The corridor; ``alter`` changes what step gives once ``late`` is set, as time passes between record and replay."""

    def __init__(self, alter: Callable[[tuple], tuple]):
        super().__init__()
        self.alter, self.late = alter, False

    def make(self) -> Any:
        env = super().make()
        step = env.step
        env.step = lambda action: self.alter(step(action)) if self.late else step(action)  # type: ignore[method-assign]
        return env


def forks(world: Altered) -> list[Fork]:
    tasks = {task.id: task for task in world.tasks("search")}
    pipeline = Pipeline(load_folder(STARTER))

    async def work() -> list[Fork]:
        played = [await play(world.make(), task, pipeline, always("right"), budget=5) for task in tasks.values()]
        world.late = True
        return await certify(world, tasks, played)

    return asyncio.run(work())


def with_info(part: str, **change: Any) -> Callable[[tuple], tuple]:
    return lambda result: (*result[:-1], {**result[-1], part: {**result[-1][part], **change}})


CHANGES: dict[str, tuple[Callable[[tuple], tuple], int, str]] = {
    "observation": (lambda result: ("Dark.", *result[1:]), 8, "Dark."),
    "admissible": (with_info("public", admissible=["left", "up"]), 6, "admissible: "),
    "order of admissible": (with_info("public", admissible=["right", "left"]), 6, "admissible: "),
    "not understood": (with_info("public", invalid=True), 8, "invalid: True"),
    "reward": (lambda result: (result[0], 0.5, *result[2:]), 8, "reward: 0.5"),
    "grading": (with_info("private", solved=False), 8, "solved: False"),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_certify_finds_what_changed_between_record_and_replay(change: str) -> None:
    alter, count, words = CHANGES[change]
    found = forks(Altered(alter))
    assert len(found) == count and words in found[0].replayed and found[0].recorded != found[0].replayed


def test_what_the_environment_declares_is_masked() -> None:
    numbers = itertools.count(10)
    world = Altered(lambda result: (f"{result[0]} at 12:{next(numbers)}", *result[1:]))
    assert len(forks(world)) == 8
    world.volatile = [r" at \d\d:\d\d"]  # type: ignore[attr-defined]
    world.alter = lambda result: (f"{result[0]} at 12:{next(numbers)}", *result[1:])
    found = forks(world)
    assert [fork for fork in found if "…" not in fork.replayed] == []
    world.alter = lambda result: result
    assert forks(world) == []
    world.volatile = ["("]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="volatile of 'corridor' must be a list of regular expressions"):
        forks(world)
