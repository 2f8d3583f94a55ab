"""A criterion that decides while the episodes come in, and stays right over all the candidates of a training.

*One candidate.* The tasks are taken in the order of the panel. For each, d is the candidate's solved share less the baseline's, repeats
averaged, so -1 <= d <= 1. A bet of the share b of one's wealth on "better" multiplies it by 1 + b d. If the candidate is no better
than the baseline, the expected d of a task that is not played yet is at most 0 and the wealth is a nonnegative supermartingale that starts at 1;
so is the mean over several bets. By Ville's inequality it ever reaches 1/a with probability at most a, so one may look after every
task and stop at once. This is testing by betting on a bounded mean (Waudby-Smith and Ramdas, 2024, doi:10.1093/jrsssb/qkad009);
PACE (arXiv:2606.08106) judges changes of agents in this way. The reverse bet, on d below the least worthwhile gain g, multiplies by
1 - b (d - g) / (1 - g); where it reaches 1/beta the candidate is rejected, which happens to one that gains g or more
with probability at most beta.

*A training.* The k-th look of a lab has the level a_k = alpha c_k (R + 1), where R counts the promotions before it and c_k = 1 / (k (k + 1)), which sum to 1:
the e-LOND rule (Xu and Ramdas, 2024; described in arXiv:2506.01452). Let e_k be the wealth at which the look stopped, with expectation at most
1 where the candidate is no better. If such a look promotes, a_k e_k >= 1, and there are at least R + 1 promotions in the end; so it adds
at most a_k e_k / (R + 1) = alpha c_k e_k to the share of false ones. The sum over all k has expectation at most alpha: of the promotions of a training,
the expected share that are no better is at most alpha, however many candidates there are and however they depend on each other.

*Several looks at one candidate.* An undecided candidate is measured again, and each task's d is the mean over all looks; that is a new look with its own level. Since
the order in which evidence arrives is no longer that of the tasks, such a look decides at the end of the panel only.

What this rests on: tasks are draws from those that the harness is for, and the baseline is measured in the same look (a stored score that was
lucky or unlucky is not). At temperature 0 a second measurement is taken to be equal to the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harnesslab.errors import ConfigError
from harnesslab.trainer.criterion import Judgement
from harnesslab.trainer.pairs import Pair, changed_tasks

BETS = (0.2, 0.4, 0.6, 0.8, 0.95)
"""Shares of the wealth that are bet, with equal weight: small ones find small gains on many tasks, large ones clear gains soon."""
LARGEST = 1e300
"""Wealth is cut off here: far above any threshold, and still a number."""


@dataclass(frozen=True, slots=True)
class AnytimeTest:
    """Promotes as soon as the evidence suffices, rejects as soon as a worthwhile gain is implausible, else is undecided.

    ``alpha``: the expected share of false promotions among all promotions of a lab. ``worthwhile``: the gain in solve rate below which a
    candidate is not worth it; one that gains as much is rejected with probability at most ``beta``. ``look``, ``promoted``
    and ``passes`` are kept by the trainer: which look of the lab this is, how many promotions there were before, and how
    often this candidate has been measured, this time included. See :mod:`harnesslab.trainer.anytime` for the proof.
    """

    alpha: float = 0.1
    worthwhile: float = 0.1
    beta: float = 0.2
    look: int = 1
    promoted: int = 0
    passes: int = 1
    name: str = "AnytimeTest"

    def __post_init__(self) -> None:
        for field in ("alpha", "worthwhile", "beta"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise ConfigError(f"AnytimeTest: {field}={value!r:.40} must be between 0 and 1")
        for field, least in (("look", 1), ("promoted", 0), ("passes", 1)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ConfigError(f"AnytimeTest: {field}={value!r:.40} must be a whole number of {least} or more")

    @property
    def sequential(self) -> bool:
        """Whether it decides before the end of the panel: at a first look only."""
        return self.passes == 1

    @property
    def level(self) -> float:
        """The level of this look: alpha (promoted + 1) / (look (look + 1)), at most alpha."""
        return min(self.alpha, self.alpha * (self.promoted + 1) / (self.look * (self.look + 1)))

    @property
    def needs(self) -> int:
        """How many gained tasks, with none lost, promote at this level: the least that this look can resolve."""
        wealth = [1.0] * len(BETS)
        count = 0
        while _mean(wealth) < 1 / self.level:
            wealth = [min(LARGEST, w * (1 + bet)) for w, bet in zip(wealth, BETS, strict=True)]
            count += 1
        return count

    def at(self, look: int, promoted: int, passes: int) -> AnytimeTest:
        """The same test for another look."""
        return replace(self, look=look, promoted=promoted, passes=passes)

    def judge(self, pairs: Sequence[Pair]) -> Judgement:
        """The first decision on the way through the pairs, in their order; minus the gain in tasks where it promotes."""
        up, down = [1.0] * len(BETS), [1.0] * len(BETS)
        gain, tasks, decided = 0.0, 0, ""
        for d in _differences(pairs):
            gain, tasks = gain + d, tasks + 1
            up = [min(LARGEST, wealth * (1 + bet * d)) for wealth, bet in zip(up, BETS, strict=True)]
            lean = (d - self.worthwhile) / (1 - self.worthwhile)
            down = [min(LARGEST, wealth * (1 - bet * lean)) for wealth, bet in zip(down, BETS, strict=True)]
            if self.sequential and _mean(up) >= 1 / self.level:
                decided = "promote"
            elif _mean(down) >= 1 / self.beta:
                decided = "reject"
            if decided:
                break
        if not decided and _mean(up) >= 1 / self.level:
            decided = "promote"
        return self._say(decided, gain, tasks, _mean(up), _mean(down), pairs)

    def _say(self, decided: str, gain: float, tasks: int, up: float, down: float, pairs: Sequence[Pair]) -> Judgement:
        gained, lost = map(len, changed_tasks(pairs))
        statistics: dict[str, Any] = {
            "gained": gained,
            "lost": lost,
            "tasks": tasks,
            "gain": round(gain, 6),
            "wealth": _digits(up),
            "needed": _digits(1 / self.level),
            "against": _digits(down),
            "level": _digits(self.level),
            "resolvable": self.needs,
            "look": self.look,
            "passes": self.passes,
        }
        numbers = f"{gain:+.3g} tasks after {tasks}, wealth {up:.3g} of {1 / self.level:.3g} (look {self.look})"
        if decided == "promote":
            return Judgement(-gain, f"better beyond chance: {numbers}", statistics=statistics)
        if decided == "reject":
            why = f"a gain of {100 * self.worthwhile:.0f} points is implausible: {numbers}"
            return Judgement(self.worthwhile * tasks - gain, why, statistics=statistics)
        why = f"not decided yet: {numbers}"
        return Judgement(0.0, why, undecided=True, statistics=statistics)


def _differences(pairs: Sequence[Pair]) -> Iterable[float]:
    """The change of each task's solved share, tasks in the order of their first pair."""
    tasks: dict[str, list[int]] = {}
    for pair in pairs:
        tasks.setdefault(pair.task, []).append(int(pair.after.solved) - int(pair.before.solved))
    return (sum(changes) / len(changes) for changes in tasks.values())


def _mean(wealth: Sequence[float]) -> float:
    return math.fsum(wealth) / len(wealth)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
