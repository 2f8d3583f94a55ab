"""What a verifier's files and output mean: Harbor's reward files, and pytest's summary as Terminal-Bench reads it.

Harbor (https://harborframework.com/docs/tasks): ``/logs/verifier/reward.json`` holds named numbers and comes first;
``/logs/verifier/reward.txt`` holds one number, and completes a ``reward.json`` that has none of the name ``reward``.
Neither of them, or one that holds no number, is an error of the trial.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harnesslab.rollout.taskfiles import kind

KEY = "reward"
"""The name of the one number that counts where there are several."""
_SUMMARY = "short test summary info"
_LINE = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED)\b(?: (\[\d+\]))? ?(.*)$")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class NoReward(Exception):
    """The verifier left nothing that can be scored; says what is wrong with which file."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reward`` as the verifier gave it, which may be below 0 or above 1; ``parts`` are all its named numbers, and
    ``share`` is that of the tests that passed where the format has no graded reward."""

    reward: float
    solved: bool
    parts: Mapping[str, float] = field(default_factory=dict)
    share: float | None = None

    @property
    def progress(self) -> float:
        """How far it got, from 0 to 1."""
        return min(1.0, max(0.0, self.reward if self.share is None else self.share))


LOST = Verdict(0.0, False)


def from_files(reward_json: bytes | None, reward_txt: bytes | None, solved_at: float = 1.0) -> Verdict:
    """The verdict of Harbor's files, None for one that is not there. Raises NoReward.

    The task is solved where its reward reaches ``solved_at``. Several numbers of which none is called ``reward`` must
    all reach it, and their mean is the reward.
    """
    if reward_json is None and reward_txt is None:
        raise NoReward("it wrote neither reward.txt nor reward.json to /logs/verifier")
    if reward_json is None:
        assert reward_txt is not None
        return verdict_of({KEY: _number(reward_txt)}, solved_at)
    parts = _numbers(reward_json)
    if KEY not in parts and reward_txt is not None:
        try:
            parts[KEY] = _number(reward_txt)
        except NoReward:
            if not parts:
                raise
    if not parts:
        raise NoReward("reward.json holds no number")
    return verdict_of(parts, solved_at)


def verdict_of(parts: Mapping[str, float], solved_at: float = 1.0) -> Verdict:
    """The verdict of named numbers, at least one."""
    counted = [parts[KEY]] if KEY in parts else list(parts.values())
    return Verdict(sum(counted) / len(counted), all(number >= solved_at for number in counted), dict(parts))


def together(verdicts: Sequence[Verdict], parts: int, final: bool, solved_at: float) -> Verdict:
    """The verdict of a task of several steps: that of the last one reached, or the mean of each number over those reached.

    It is solved where every step was reached and is solved.
    """
    solved = len(verdicts) == parts and all(verdict.solved for verdict in ([verdicts[-1]] if final else verdicts))
    if len(verdicts) == 1 or final:
        return replace(verdicts[-1], solved=solved)
    numbers = [verdict.parts or {"reward": verdict.reward} for verdict in verdicts]
    names = dict.fromkeys(name for given in numbers for name in given)
    means = {name: sum(given.get(name, 0.0) for given in numbers) / len(numbers) for name in names}
    return Verdict(verdict_of(means, solved_at).reward, solved, means)


def from_pytest(output: str) -> Verdict:
    """The verdict of pytest's output with ``-rA``: every test in its summary must have passed. Raises NoReward.

    A test that is skipped, or expected to fail and does, counts as passed.
    """
    _, found, summary = _COLOUR.sub("", output).rpartition(_SUMMARY)
    if not found:
        raise NoReward(f"the output of the tests has no '{_SUMMARY}' of pytest, which -rA prints")
    tests: dict[str, bool] = {}
    for line in summary.splitlines():
        if match := _LINE.match(line.strip()):
            outcome, times, rest = match.groups()
            name = rest if times else rest.split(" - ", 1)[0]
            tests[name] = tests.get(name, True) and outcome in ("PASSED", "XFAIL", "SKIPPED")
    if not tests:
        raise NoReward("pytest's summary names no test")
    passed = sum(tests.values())
    return Verdict(float(passed == len(tests)), passed == len(tests), share=passed / len(tests))


def _number(text: bytes) -> float:
    words = text.decode("utf-8-sig", "replace").strip()
    if not words:
        raise NoReward("reward.txt is empty")
    try:
        number = float(words)
    except ValueError:
        raise NoReward(f"reward.txt holds {words[:40]!r} where a number belongs") from None
    if not math.isfinite(number):
        raise NoReward(f"reward.txt holds {words[:40]}, which is not a finite number")
    return number


def _numbers(text: bytes) -> dict[str, float]:
    words = text.decode("utf-8-sig", "replace")
    if not words.strip():
        raise NoReward("reward.json is empty")
    try:
        loaded = json.loads(words)
    except (ValueError, RecursionError) as error:
        raise NoReward(f"reward.json cannot be read: {error}") from None
    if not isinstance(loaded, dict):
        raise NoReward(f"reward.json holds {kind(loaded)} where an object of numbers belongs")
    numbers: dict[str, float] = {}
    for name, value in loaded.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            if name == KEY and value is not None:
                raise NoReward(f"the '{KEY}' of reward.json is {kind(value)} where a number belongs")
            continue
        try:
            finite = math.isfinite(value)
        except OverflowError:
            finite = False
        if not finite:
            raise NoReward(f"the '{name[:40]}' of reward.json is not a finite number")
        numbers[name] = float(value)
    return numbers
