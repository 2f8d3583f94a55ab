"""check_env: a sound environment passes, and each way to break one is caught with a message that names it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.env import Policy, Split, Task
from harnesslab.testing import CHECKS, Report, check_env

DOORS = ("red", "blue", "green")
Result = tuple[Any, ...]
Alter = Callable[["Rooms", Result], Any]


class Rooms:
    """Open the door that the task names; ``alter`` may change what reset and step return."""

    def __init__(self, alter: Alter | None = None):
        self.alter = alter
        self.goal = ""
        self.solved = False
        self.steps = 0
        self.episodes = 0

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Result:
        self.goal, self.solved, self.steps = (options or {})["door"], False, 0
        self.episodes += 1
        return self._give("You see three doors.", self._info())

    def step(self, action: Any) -> Result:
        self.steps += 1
        if action not in self._admissible():
            return self._give("That makes no sense.", 0.0, False, False, self._info(invalid=True))
        self.solved = action == f"open {self.goal}"
        return self._give(f"You {action}.", float(self.solved), self.solved, False, self._info())

    def close(self) -> None:
        pass

    def _admissible(self) -> list[str]:
        return ["look", *(f"open {door}" for door in DOORS)]

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        return {
            "public": {
                "instruction": f"Open the {self.goal} door.",
                "admissible": self._admissible(),
                "invalid": invalid,
            },
            "private": {"solved": self.solved, "progress": float(self.solved), "hint": f"hinge-of-{self.goal}"},
        }

    def _give(self, *result: Any) -> Any:
        return self.alter(self, result) if self.alter else result


class World:
    """The environment of Rooms. Keyword arguments break it."""

    name, version, max_steps = "rooms", "1", 5

    def __init__(self, alter: Alter | None = None, instance: type[Rooms] = Rooms, oracle: Policy | None = None):
        self.alter, self.instance, self._oracle = alter, instance, oracle

    def tasks(self, split: Split) -> list[Task]:
        return [
            Task(f"{split}-{i}-{door}", split, "doors", options={"door": door, "of": split})
            for i, door in enumerate(DOORS)
        ]

    def make(self) -> Any:
        return self.instance(self.alter)

    def oracle(self, task: Task) -> Policy:
        return self._oracle or (lambda _observation, _info: f"open {task.options['door']}")

    def starter(self) -> Path:
        return Path()


def failing(report: Report) -> set[str]:
    return {finding.check for finding in report.findings}


def only(report: Report, check: str, words: str) -> None:
    """``check`` failed, with these words in its message."""
    messages = [str(finding) for finding in report.failures(check)]
    assert any(words in message for message in messages), (messages, report.findings)


def test_a_sound_environment_passes_all_checks() -> None:
    report = check_env(f"{__name__}:World")
    assert report.ok and not report.skipped, str(report)
    assert (report.tasks, report.oracle_solved, report.null_solved) == (3, 3, 0)
    assert report.raise_for_failures() is report
    assert [state for _, state, _ in report.rows()] == ["ok"] * len(CHECKS)


def test_the_report_shows_itself_and_escapes() -> None:
    report = check_env(World(lambda _env, result: ("<b>" + "x" * 30_000, *result[1:])), limit=1)
    assert "<b>" not in report._repr_html_() and "FAILED" in report._repr_html_()
    assert "skipped" in str(report)
    with pytest.raises(EnvironmentFault, match=r"\[bounded\].*more than 20000"):
        report.raise_for_failures()


def change_info(part: str, **values: Any) -> Alter:
    def alter(_env: Rooms, result: Result) -> Result:
        result[-1][part].update(values)
        return result

    return alter


def observe(text: Callable[[Rooms, str], Any]) -> Alter:
    return lambda env, result: (text(env, result[0]), *result[1:])


def more_parts(_env: Rooms, result: Result) -> Result:
    result[-1]["debug"] = {}
    return result


BROKEN: dict[str, tuple[Alter, str, str]] = {
    "tuple in info": (change_info("public", extra=(1, 2)), "json", "is a tuple"),
    "set in info": (change_info("private", extra={1}), "json", "is a set"),
    "nan": (change_info("private", extra=float("nan")), "json", "nan"),
    "int key": (change_info("public", extra={1: 2}), "json", "not a string"),
    "surrogate": (observe(lambda _env, _text: "\ud800"), "json", "surrogate"),
    "bytes": (observe(lambda _env, _text: b"hello"), "protocol", "not text"),
    "third part": (more_parts, "protocol", "not exactly"),
    "solved is no bool": (change_info("private", solved=1), "protocol", "['solved'] must be a bool"),
    "progress": (change_info("private", progress=1.5), "protocol", "not a number from 0 to 1"),
    "invalid is no bool": (change_info("public", invalid="no"), "protocol", "['invalid'] must be a bool"),
    "admissible": (change_info("public", admissible="look"), "protocol", "list of actions"),
    "tools": (change_info("public", tools=[{"name": "x"}]), "protocol", "function schemas"),
    "no instruction": (change_info("public", instruction=" "), "protocol", "must be the task in words"),
    "four values": (lambda _env, result: result[:4] if len(result) == 5 else result, "protocol", "5 values"),
    "info is no dict": (lambda _env, result: (*result[:-1], None), "protocol", "info as a dict"),
    "reward": (
        lambda _env, result: result if len(result) == 2 else (result[0], "1", *result[2:]),
        "protocol",
        "reward",
    ),
    "huge public": (change_info("public", extra="x" * 300_000), "bounded", "public info"),
    "private key": (change_info("public", hint="nothing"), "privacy", "private key 'hint'"),
    "private value": (
        lambda env, result: change_info("public", extra=[f"see hinge-of-{env.goal}"])(env, result),
        "privacy",
        "hinge-of-red",
    ),
    "private value at reset": (
        observe(lambda env, text: text if env.steps else f"{text} hinge-of-{env.goal}"),
        "privacy",
        "hinge-of-red",
    ),
    "task id": (observe(lambda env, text: f"{text} (search-0-{env.goal})"), "privacy", "task id 'search-0-red'"),
    "random": (observe(lambda _env, text: f"{text} {random.random()}"), "repeat", "the reset differs"),
    "keeps state": (observe(lambda env, text: f"{text} {env.episodes}"), "reset", "second episode"),
}


@pytest.mark.parametrize("alter, check, words", BROKEN.values(), ids=BROKEN)
def test_what_an_environment_gives(alter: Alter, check: str, words: str) -> None:
    only(check_env(World(alter)), check, words)


def test_an_instruction_may_hold_what_is_private_too() -> None:
    assert check_env(World(change_info("private", goal="Open the"))).ok


class Raising(Rooms):
    def step(self, action: Any) -> Result:
        if isinstance(action, dict):
            raise KeyError("name")
        return super().step(action)


class Forgiving(Rooms):
    def step(self, action: Any) -> Result:
        return super().step(action if action in self._admissible() else "look")


class Refusing(Rooms):
    def step(self, action: Any) -> Result:
        return super().step("?" if action == "look" else action)


class CloseOnce(Rooms):
    def close(self) -> None:
        del self.goal


class Shared(Rooms):
    """Hands out its own list of actions."""

    def __init__(self, alter: Alter | None = None):
        super().__init__(alter)
        self.actions = super()._admissible()

    def _admissible(self) -> list[str]:
        return self.actions


class Slow(Rooms):
    def step(self, action: Any) -> Result:
        return super().step("look")


@pytest.mark.parametrize(
    "instance, check, words",
    [
        (Raising, "invalid", "raised KeyError on {}"),
        (Forgiving, "invalid", "is not true"),
        (Refusing, "admissible", "'look' was listed as admissible and not understood"),
        (CloseOnce, "close", "the second close raised AttributeError"),
        (Shared, "isolation", "info was emptied by its receiver"),
        (Slow, "oracle", "not solved in 5 steps"),
    ],
)
def test_what_an_environment_does(instance: type[Rooms], check: str, words: str) -> None:
    only(check_env(World(instance=instance)), check, words)


def test_a_policy_that_raises_is_the_oracles_fault() -> None:
    def oracle(_observation: str, _info: dict[str, Any]) -> str:
        raise LookupError("lost")

    report = check_env(World(oracle=oracle))
    only(report, "oracle", "the policy raised LookupError: lost")
    assert failing(report) == {"oracle"}


class Easy(World):
    def null(self, task: Task) -> Policy:
        return lambda _observation, _info: "open red"


def test_what_a_null_agent_solves_must_be_known() -> None:
    only(check_env(Easy()), "null", "solved 1 of 3 tasks")
    assert check_env(Easy(), null_floor=0.34).ok


class Overlapping(World):
    def tasks(self, split: Split) -> list[Task]:
        return [] if split == "sealed" else [Task("same", "search", "doors", options={"door": "red"})]


def test_splits_that_overlap() -> None:
    report = check_env(Overlapping())
    for words in (
        "the split sealed has no tasks",
        "says search",
        "used in search and again in gate",
        "same seed and options",
    ):
        only(report, "splits", words)


def hash_order() -> World:
    """Differs from process to process: the order of a set of strings hangs on the hash seed."""
    return World(observe(lambda _env, text: text + " ".join(set("abcdefghijklmnop"))))


def dies_in_a_child() -> World:
    if "PYTHONHASHSEED" in os.environ and os.environ["PYTHONHASHSEED"] == "2":
        raise RuntimeError("no second child")
    return World()


def test_other_processes() -> None:
    report = check_env(f"{__name__}:hash_order")
    only(report, "processes", "different hash seed")
    assert failing(report) == {"processes"}
    only(check_env(f"{__name__}:dies_in_a_child"), "processes", "no second child")
    assert check_env(f"{__name__}:hash_order", processes=False).skipped == {"processes": "not asked for"}
