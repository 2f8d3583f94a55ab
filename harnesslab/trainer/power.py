"""What a panel can show under a criterion, and how often it promotes what changes nothing: simulated with the criterion itself.

A task's outcomes are draws with its own solve rate. Three kinds of tasks are simulated, because nobody knows beforehand which
kind a panel is: rates near 0 or 1 (a greedy backbone, or an easy and a hard half), rates spread evenly, and rates near their
mean. The metrics of an episode (steps, invalid actions, tokens) are draws as well, the same on both sides. A candidate that changes nothing
is played with the baseline's own rates; one that gains x points moves every rate the same share of its way to 1.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from harnesslab.rollout.records import Episode
from harnesslab.trainer.criterion import Criterion, NetSolve, StrictPareto, ask
from harnesslab.trainer.pairs import Pair

KINDS = {"nearly deterministic": 0.05, "mixed": 0.5, "noisy": 5.0}
"""Kinds of tasks, by the parameter a of the Beta(a, a) that their solve rates come from where the mean is one half."""
TRIALS = 300
"""Candidates that are simulated for each kind and gain."""
POWER = 0.8
"""How often a gain must be promoted to count as resolved."""
GAINS = (2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90)
"""Gains in points that are tried, the smallest first."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What a criterion does on one kind of tasks.

    ``false`` is the share of candidates that change nothing and are promoted, ``training`` the share of trainings with at least one of those if all
    candidates change nothing and are judged on fresh draws. ``gain`` is the smallest true gain, in points, that is promoted at the first look with 80% power; None: none.
    """

    kind: str
    false: float
    training: float
    gain: int | None


def least_gain(criterion: Criterion, baseline: Iterable[Episode]) -> int | None:
    """How many more tasks a candidate must solve, with none lost and nothing else changed, to be promoted over this baseline.

    None where not even solving all of them is enough.
    """
    episodes = [episode for episode in baseline if episode.status == "finished"]
    open_ = list(dict.fromkeys(e.task_id for e in episodes if not e.solved))

    def promoted(count: int) -> bool:
        gained = set(open_[:count])
        after = [replace(e, solved=True) if e.task_id in gained else e for e in episodes]
        said = ask(criterion, [Pair(one, other) for one, other in zip(episodes, after, strict=True)])
        return said.value < 0 and not said.undecided

    if not open_ or not promoted(len(open_)):
        return None
    low, high = 0, len(open_)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if promoted(middle) else (middle, high)
    return high


def simulate(
    looks: Sequence[Criterion], tasks: int, repeats: int = 1, *, mean: float = 0.5, trials: int = TRIALS
) -> list[Rates]:
    """The rates of a criterion on ``tasks`` tasks, each played ``repeats`` times, for every kind of tasks.

    ``looks``: the criterion of each candidate of a training that promotes nothing. ``mean``: the baseline's solve rate. Deterministic.
    Raises CriterionFault.
    """
    return [_on(kind, a, looks, tasks, repeats, mean, trials) for kind, a in KINDS.items()]


@lru_cache(maxsize=64)
def false_rate(criterion: StrictPareto | NetSolve, tasks: int, repeats: int, mean: float = 0.5) -> float:
    """The share of candidates that change nothing and are promoted on such a panel, for the worst kind of tasks.

    ``mean``: the baseline's solve rate.
    """
    return max(
        sum(_null(criterion, _panel(a, mean, tasks, dice), repeats, dice) for _ in range(TRIALS)) / TRIALS
        for dice, a in ((random.Random(kind), a) for kind, a in KINDS.items())
    )


def _on(kind: str, a: float, looks: Sequence[Criterion], tasks: int, repeats: int, mean: float, trials: int) -> Rates:
    dice, criterion = random.Random(kind), looks[0]
    trainings = max(1, trials // len(looks))
    found = [sum(_null(look, _panel(a, mean, tasks, dice), repeats, dice) for look in looks) for _ in range(trainings)]
    few = max(1, trials // 3)

    def resolved(points: int) -> bool:
        won = sum(_gains(criterion, _panel(a, mean, tasks, dice), points, repeats, dice) for _ in range(few))
        return won >= POWER * few

    possible = [points for points in GAINS if points <= 100 * (1 - mean)]
    place = bisect_left(possible, True, key=resolved)
    gain = possible[place] if place < len(possible) else None
    false = sum(found) / (trainings * len(looks))
    return Rates(kind, false, 1 - (1 - false) ** len(looks), gain)


def _panel(a: float, mean: float, tasks: int, dice: random.Random) -> list[float]:
    return [dice.betavariate(2 * a * mean, 2 * a * (1 - mean)) for _ in range(tasks)]


def _null(criterion: Criterion, panel: Sequence[float], repeats: int, dice: random.Random) -> bool:
    return _promoted(criterion, panel, panel, repeats, dice)


def _gains(criterion: Criterion, panel: Sequence[float], points: float, repeats: int, dice: random.Random) -> bool:
    room = len(panel) - sum(panel)
    share = min(1.0, points / 100 * len(panel) / room) if room else 0.0
    return _promoted(criterion, panel, [rate + share * (1 - rate) for rate in panel], repeats, dice)


def _promoted(
    criterion: Criterion, before: Sequence[float], after: Sequence[float], repeats: int, dice: random.Random
) -> bool:
    pairs = [
        Pair(_play(task, repeat, one, dice), _play(task, repeat, other, dice))
        for task, (one, other) in enumerate(zip(before, after, strict=True))
        for repeat in range(repeats)
    ]
    said = ask(criterion, pairs)
    return said.value < 0 and not said.undecided


def _play(task: int, repeat: int, rate: float, dice: random.Random) -> Episode:
    solved = dice.random() < rate
    return Episode(
        f"task-{task}",
        "",
        "",
        repeat,
        solved=solved,
        progress=1.0 if solved else dice.choice((0.0, 0.25, 0.5, 0.75)),
        invalid=dice.randrange(4),
        prompt_tokens=dice.randrange(500, 1500),
        length=dice.randrange(3, 20),
    )
