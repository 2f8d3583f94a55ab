"""Criteria judge a candidate against the baseline on the same tasks. A loss below zero selects it.

``StrictPareto`` follows harness-training (workofart/harness-training, MIT): no solved task may regress, and
exact ties fall to secondary metrics, the i-th of which is worth plus or minus 2^-(i+1). Unlike there, a metric only counts where a
paired test says that it moved. ``PairedTest`` is the exact
McNemar test for one repeat and a paired sign-flip permutation test over tasks for several.
:class:`~harnesslab.trainer.anytime.AnytimeTest` decides while the episodes come in.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harnesslab.errors import ConfigError, CriterionFault, HarnesslabError, UnmeasurableRun
from harnesslab.plaintext import in_words
from harnesslab.rollout.metrics import METRICS, Metric
from harnesslab.rollout.records import Episode
from harnesslab.trainer.pairs import Pair, changed_tasks

SECONDARY = ("progress", "invalid", "steps", "tokens")
TIE_ALPHA = 0.05
"""Level at which ties are broken by metrics, shared among them."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a criterion says.

    ``value`` is the loss: below 0 selects the candidate, infinity rejects it for sure. ``why`` is one sentence.
    ``undecided``: the measurement cannot tell, whatever the value. ``statistics``: the numbers behind it, as plain JSON.
    """

    value: float
    why: str
    undecided: bool = False
    statistics: Mapping[str, Any] = field(default_factory=dict)


class Criterion(Protocol):
    """Judges pairs of episodes. Deterministic: the same pairs give the same judgement.

    Derive from it and write ``judge``::

        class FewerSteps(hl.Criterion):
            def judge(self, pairs):
                return hl.Judgement(sum(pair.after.length - pair.before.length for pair in pairs), "steps in all")

    Optional member: ``sequential``, true for one that takes the pairs in order and decides at the first pair at which it can,
    so that what follows changes nothing; it is asked after each task, and the measurement stops with its decision.
    """

    @property
    def name(self) -> str:
        """The name that verdicts carry; the name of the class by default."""
        return type(self).__name__

    def judge(self, pairs: Sequence[Pair]) -> Judgement:
        """The judgement on complete, scorable pairs."""
        ...


@dataclass(frozen=True, slots=True)
class StrictPareto:
    """No solved task may regress; more solved tasks win; an exact tie falls to the secondary metrics in order.

    A metric breaks a tie where an exact sign test over the tasks says that it moved, at level ``tie_alpha`` shared among the
    metrics; ``tie_alpha=None`` is the published rule, by which any difference of the means does.
    """

    metrics: tuple[str, ...] = SECONDARY
    tie_alpha: float | None = TIE_ALPHA
    name: str = "StrictPareto"

    def __post_init__(self) -> None:
        _known(self.metrics)
        object.__setattr__(self, "metrics", tuple(self.metrics))  # a list is as good

    def judge(self, pairs: Sequence[Pair]) -> Judgement:
        """``inf`` on a regression, minus the gain in tasks, or the signed sum of the tie-breakers."""
        gained, lost = changed_tasks(pairs)
        gain = len(gained)
        if lost:
            return Judgement(math.inf, f"{_tasks(len(lost))} that the baseline solved {_was(len(lost))} lost")
        if gain:
            return Judgement(-float(gain), f"{gain} more {'task' if gain == 1 else 'tasks'} solved, none lost")
        return _tie(pairs, self.metrics, self.tie_alpha, "as many solved")


@dataclass(frozen=True, slots=True)
class NetSolve:
    """More solved tasks win, whatever was lost for them; ``margin`` is the least gain that selects by itself.

    With ``metrics``, a tie or a gain below the margin falls to them, by the test that :class:`StrictPareto` describes.
    """

    margin: int = 1
    metrics: tuple[str, ...] = ()
    tie_alpha: float | None = TIE_ALPHA
    name: str = "NetSolve"

    def __post_init__(self) -> None:
        _known(self.metrics)
        object.__setattr__(self, "metrics", tuple(self.metrics))  # a list is as good

    def judge(self, pairs: Sequence[Pair]) -> Judgement:
        """Minus the gain where it reaches the margin; below it, what the ``metrics`` say, if any; else the shortfall."""
        gained, lost = map(len, changed_tasks(pairs))
        gain = gained - lost
        statistics = {"gained": gained, "lost": lost}
        if gain >= self.margin:
            return Judgement(-float(gain), f"{gained} gained, {lost} lost", statistics=statistics)
        if gain >= 0 and self.metrics:
            said = "as many solved" if gain == 0 else f"{gained} gained, {lost} lost, below the margin of {self.margin}"
            return _tie(pairs, self.metrics, self.tie_alpha, said)
        why = f"{gained} gained, {lost} lost: the net gain is below the margin of {self.margin}"
        return Judgement(float(self.margin - gain), why, statistics=statistics)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Selects what is better beyond chance: one-sided exact test at level ``alpha``.

    A gain that chance could explain is *undecided*, not rejected: measure more tasks or repeats.
    """

    alpha: float = 0.05
    name: str = "PairedTest"

    def __post_init__(self) -> None:
        # Missing packages are reported before anything is played.
        from harnesslab.analysis import statistics  # noqa: F401

    def judge(self, pairs: Sequence[Pair]) -> Judgement:
        """Exact McNemar on single repeats, sign-flip permutation over tasks on several."""
        from harnesslab.analysis.statistics import paired_test

        result = paired_test([(pair.task, pair.before.solved, pair.after.solved) for pair in pairs])
        gain, net = result.gain, result.gained - result.lost
        # Repeats can shift a task's solved share without turning the task; the test sees both.
        shares = "" if gain == net else f", {gain:+.3g} tasks in solved shares"
        numbers = f"{result.gained} gained, {result.lost} lost{shares}, p = {result.p:.3g} ({result.method})"
        statistics = {"gained": result.gained, "lost": result.lost, "p": result.p, "method": result.method}
        if gain <= 0:
            return Judgement(-gain if gain else 1.0, f"no gain: {numbers}", statistics=statistics)
        if result.p < self.alpha:
            return Judgement(-gain, f"better beyond chance: {numbers}", statistics=statistics)
        why = f"chance could explain the gain: {numbers}; measure more tasks or repeats"
        return Judgement(0.0, why, undecided=True, statistics=statistics)


def judge_all(criterion: Criterion, pairs: Sequence[Pair]) -> Judgement:
    """Judge the pairs, untrusted ones included.

    Counts the unscorable episodes once as lost and once as solved. Raises UnmeasurableRun when the
    decisions differ, or when nothing was scorable at all.
    """
    unscorable = [pair for pair in pairs if not pair.scorable]
    if not pairs or len(unscorable) == len(pairs):
        raise UnmeasurableRun("no task was scorable on both sides: the environment or the backbone failed each time")
    if not unscorable:
        return ask(criterion, pairs)
    worst = ask(criterion, [pair.assume(before=True, after=False) for pair in pairs])
    best = ask(criterion, [pair.assume(before=False, after=True) for pair in pairs])
    if (worst.value < 0, worst.undecided) != (best.value < 0, best.undecided):
        names = ", ".join(sorted({pair.task for pair in unscorable})[:5])
        raise UnmeasurableRun(
            f"{len(unscorable)} of {len(pairs)} episodes are unscorable ({names}) and could change the verdict; "
            "measure them again with trainer.resume(), or leave those tasks out"
        )
    return ask(criterion, [pair for pair in pairs if pair.scorable])


def ask(criterion: Criterion, pairs: Sequence[Pair]) -> Judgement:
    """The criterion's judgement, checked: it may be anybody's code. Raises CriterionFault."""
    name = type(criterion).__name__
    try:
        said: Any = criterion.judge(pairs)
    except HarnesslabError:
        raise
    except Exception as error:
        raise CriterionFault(f"{name}.judge raised {in_words(error)}") from error
    if not isinstance(said, Judgement):
        raise CriterionFault(f"{name}.judge must return a Judgement, not {type(said).__name__}")
    value: Any = said.value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or math.isnan(value) or value == -math.inf:
        raise CriterionFault(
            f"{name}.judge returned the loss {value!r:.60}; it must be a number, or infinity for a sure rejection"
        )
    if not isinstance(said.why, str):
        raise CriterionFault(f"{name}.judge returned a why that is a {type(said.why).__name__}, not text")
    try:
        statistics = dict(said.statistics)
        json.dumps(statistics, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CriterionFault(f"{name}.judge returned statistics that are not a JSON object: {error}") from error
    return Judgement(float(value), said.why, bool(said.undecided), statistics)


def foregone(criterion: Criterion, done: Sequence[Pair], left: Sequence[Episode]) -> Judgement | None:
    """The rejection that no outcome of the episodes that are ``left`` of the baseline can avert; None while one can.

    Assumes the best for each: solved at once, without tokens. Only a sure rejection stops early; a promotion
    is measured to the end, so that its record is whole.
    """
    if not any(pair.scorable for pair in done):
        return None
    best = [pair.assume(before=False, after=True) for pair in done]
    judgement = ask(criterion, [*best, *(Pair(episode, _perfect(episode)) for episode in left)])
    return judgement if judgement.value >= 0 and not judgement.undecided else None


def hopeless(criterion: Criterion, done: Sequence[Pair], left: Sequence[Episode]) -> bool:
    """Whether no outcome of the episodes that are ``left`` of the baseline could still select the candidate."""
    return foregone(criterion, done, left) is not None


def decides(criterion: Criterion, prefix: Sequence[Pair]) -> bool:
    """Whether a sequential criterion has decided on the first pairs of a panel, so that the others change nothing."""
    return bool(prefix) and not ask(criterion, prefix).undecided


def is_sequential(criterion: Criterion) -> bool:
    """Whether the criterion decides while the pairs come in."""
    return bool(getattr(criterion, "sequential", False))


def _perfect(episode: Episode) -> Episode:
    return Episode(episode.task_id, episode.family, "", episode.repeat, solved=True, progress=1.0)


def _tie(pairs: Sequence[Pair], names: Sequence[str], alpha: float | None, solved: str) -> Judgement:
    value, said = 0.0, []
    for place, name in enumerate(names):
        metric = METRICS[name]
        before = metric.mean([pair.before for pair in pairs])
        after = metric.mean([pair.after for pair in pairs])
        if alpha is None:
            gain = after - before
            moved = 0 if math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12) else int(math.copysign(1, gain))
        else:
            moved = _moved(pairs, metric, alpha / len(names))
        if moved:
            better = moved * metric.sign > 0
            value += -(2.0 ** -(place + 1)) if better else 2.0 ** -(place + 1)
            said.append(f"{name} {'better' if better else 'worse'} ({before:.3g} to {after:.3g})")
    nothing = "no difference in any metric" + (" beyond chance" if alpha is not None else "")
    return Judgement(value, f"{solved}; " + (", ".join(said) if said else nothing))


def _moved(pairs: Sequence[Pair], metric: Metric, alpha: float) -> int:
    """1 where the metric rose on more tasks than chance explains, -1 where it fell, else 0: the exact sign test.

    Repeats of a task are averaged first. A better outcome of one pair never makes the test less favourable, which is
    what stopping early rests on.
    """
    changes: dict[str, float] = {}
    for pair in pairs:
        changes[pair.task] = changes.get(pair.task, 0.0) + metric.of(pair.after) - metric.of(pair.before)
    up, down = sum(change > 1e-9 for change in changes.values()), sum(change < -1e-9 for change in changes.values())
    more, moved = max(up, down), up + down
    p = sum(math.comb(moved, count) for count in range(more, moved + 1)) / 2**moved
    return 0 if p > alpha or up == down else 1 if up > down else -1


def _known(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise ConfigError(f"unknown metric {unknown[0]!r}; known are {', '.join(METRICS)}")


def _tasks(count: int) -> str:
    return f"{count} task" + ("" if count == 1 else "s")


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
