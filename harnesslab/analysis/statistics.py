"""The statistics behind the tables: intervals, paired tests, what a panel can show at all.

scipy and statsmodels do the arithmetic; they come with the extra ``lab``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harnesslab.extras import comes_with
from harnesslab.rollout.tasks import won_tasks

with comes_with("lab"):
    import numpy as np
    from scipy import stats
    from statsmodels.stats.proportion import proportion_confint

PERMUTATIONS = 20_000


def wilson(solved: float, total: float, level: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval of a solve rate, as shares (low, high); (0.0, 1.0) when nothing was played."""
    if total == 0:
        return (0.0, 1.0)
    low, high = proportion_confint(solved, total, alpha=1 - level, method="wilson")
    rate = solved / total
    # Rounding must not put the estimate itself outside.
    return (min(float(low), rate), max(float(high), rate))


def clustered(shares: Sequence[float], episodes: int, level: float = 0.95) -> tuple[float, float]:
    """The interval of the mean of each task's solved share (low, high), with repeats of a task as one cluster.

    Wilson's interval on the effective sample size, p (1 - p) over the variance of the mean between tasks (Korn and
    Graubard, 1998), which lies between the number of tasks and that of ``episodes``. One repeat gives Wilson's own.
    """
    if not shares:
        return (0.0, 1.0)
    count, rate = len(shares), float(np.mean(shares))
    spread = float(np.var(shares, ddof=1)) / count if count > 1 else 0.0
    size = rate * (1 - rate) / spread if spread and episodes > count else float(count)
    size = min(max(size, count), episodes)
    return wilson(rate * size, size, level)


@dataclass(frozen=True, slots=True)
class PairedResult:
    """``gained`` and ``lost`` count tasks, by :data:`harnesslab.rollout.tasks.RULE`.

    ``gain`` is what was tested: the sum over tasks of the change in a task's solved share; with one repeat ``gained`` less
    ``lost``. ``p`` is one-sided: how likely such a gain is by chance.
    """

    gained: int
    lost: int
    gain: float
    p: float
    method: str


def paired_test(pairs: Sequence[tuple[str, bool, bool]]) -> PairedResult:
    """Test whether 'after' solves more than 'before' on the same tasks.

    ``pairs`` are (task, before, after). With one repeat a task: the exact McNemar test, a binomial test on the
    discordant pairs. With several: a sign-flip permutation test on the mean difference of each task (repeats of one task
    are not independent), exact where it is small, else 20,000 seeded permutations.
    """
    before = won_tasks((task, was) for task, was, _ in pairs)
    after = won_tasks((task, now) for task, _, now in pairs)
    gained, lost = len(after - before), len(before - after)
    tasks: dict[str, list[int]] = {}
    for task, was, now in pairs:
        tasks.setdefault(task, []).append(int(now) - int(was))
    if all(len(differences) == 1 for differences in tasks.values()):
        p = stats.binomtest(gained, gained + lost, 0.5, alternative="greater").pvalue if gained + lost else 1.0
        return PairedResult(gained, lost, float(gained - lost), float(p), "exact McNemar")
    means = np.array([np.mean(differences) for _, differences in sorted(tasks.items())])
    gain, means = round(float(means.sum()), 9), means[means != 0]
    if means.size <= 1:
        # One task alone can flip its sign only once; scipy wants two observations at least.
        return PairedResult(gained, lost, gain, 0.5 if gain > 0 else 1.0, "sign-flip permutation")
    result = stats.permutation_test(
        (means,),
        np.mean,
        permutation_type="samples",
        alternative="greater",
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(0),
    )
    return PairedResult(gained, lost, gain, float(result.pvalue), "sign-flip permutation")


def minimum_gain(tasks: int, noise: float = 0.0, *, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """The least net gain in tasks that a paired test on a panel of ``tasks`` finds with the given power.

    ``noise`` is the share of tasks that flip by themselves, as an A/A run measures it; half of them flip each way. The
    remaining flips are gains. ``None``: the panel is too small to show any gain at all.
    """
    noisy = round(noise * tasks)
    for gain in range(1, tasks - noisy + 1):
        discordant = gain + noisy
        # The power of a one-sided binomial test on the discordant pairs, by its exact distribution.
        threshold = int(stats.binom.isf(alpha, discordant, 0.5)) + 1
        share = (gain + noisy / 2) / discordant
        if threshold <= discordant and stats.binom.sf(threshold - 1, discordant, share) >= power:
            return gain
    return None
