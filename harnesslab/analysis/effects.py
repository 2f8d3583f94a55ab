"""Effects of interventions, estimated from episodes in which each was switched on at random.

Every episode counts for every intervention at once, as in screening designs (Plackett and Burman, Biometrika 33, 1946). The model
is a logistic regression: an intercept for each task and one effect for each intervention, all with normal priors, so that
a small or perfectly separated sample shrinks towards zero in place of diverging. Intervals are Laplace's approximation.
scipy does the arithmetic; it comes with the extra ``lab``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError
from harnesslab.extras import comes_with

with comes_with("lab"):
    import numpy as np
    from scipy import linalg, optimize, special, stats

EFFECT_SD = 1.0
"""Standard deviation of the prior of an effect, in logits."""
TASK_SD = 2.0
"""Standard deviation of the prior of a task's intercept around the mean of all, in logits."""
MEAN_SD = 3.0
"""Standard deviation of the prior of that mean."""
LEAST_SCALE = 0.02
"""Graded outcomes vary less than binary ones; their scale is estimated, but not below this share of the binary variance."""

Outcome = Literal["solved", "progress"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One episode: its task, the interventions that were switched on, and what came of it.

    ``on`` holds names, whether they fired or not; ``fired`` those of them that did. ``progress`` is between 0 and 1.
    """

    task: str
    on: frozenset[str]
    solved: bool
    progress: float = 0.0
    fired: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Effect:
    """What switching one intervention on does, averaged over the episodes as they were played.

    ``on`` and ``off`` count episodes, ``fired`` those in which it was on and fired. ``points`` is the mean change of the
    outcome in percentage points, ``low`` and ``high`` its interval; ``helps`` is the probability that the effect is above zero.
    ``logit`` and ``error`` are the effect and its standard error in logits.
    """

    name: str
    on: int
    off: int
    fired: int
    points: float
    low: float
    high: float
    helps: float
    logit: float
    error: float


class Effects(Sequence[Effect]):
    """The estimated effects, the most likely to help first. Shows itself as a table; ``plot()`` draws a forest plot."""

    def __init__(self, effects: Iterable[Effect], *, outcome: Outcome, episodes: int, tasks: int, level: float):
        """``outcome``: what was modelled. ``level``: of the intervals."""
        self._effects = tuple(sorted(effects, key=lambda effect: (-effect.helps, -effect.points, effect.name)))
        self.outcome, self.episodes, self.tasks, self.level = outcome, episodes, tasks, level

    def __len__(self) -> int:
        return len(self._effects)

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._effects)

    def __getitem__(self, key: Any) -> Any:
        """By place, or by the intervention's name. Raises KeyError with the names that exist."""
        if not isinstance(key, str):
            return self._effects[key]
        for effect in self._effects:
            if effect.name == key:
                return effect
        raise KeyError(f"no effect of {key!r:.80}; there are: {', '.join(e.name for e in self._effects) or 'none'}")

    def table(self) -> Table:
        """One row an intervention: on, off, fired, effect in points with its interval, P(helps)."""
        rows = [
            {
                "intervention": effect.name,
                "on": effect.on,
                "off": effect.off,
                "fired": effect.fired,
                "points": f"{effect.points:+.1f}",
                f"{self.level:.0%} CI": f"{effect.low:+.1f} to {effect.high:+.1f}",
                "P(helps)": f"{effect.helps:.2f}",
            }
            for effect in self
        ]
        of = "solve rate" if self.outcome == "solved" else "progress, since no episode was solved"
        columns = ["intervention", "on", "off", "fired", "points", f"{self.level:.0%} CI", "P(helps)"]
        table = Table(rows, title=f"effects on {of}: {self.episodes} episodes, {self.tasks} tasks", columns=columns)
        if any(not effect.fired and effect.on for effect in self):
            table.notes.append("An intervention that never fired did nothing; its estimate is noise.")
        return table

    def to_json(self) -> list[dict[str, Any]]:
        """One plain JSON object an effect, numbers in four digits."""
        numbers = ("points", "low", "high", "helps", "logit", "error")
        counts = ("name", "on", "off", "fired")
        return [
            {name: getattr(effect, name) for name in counts}
            | {name: float(f"{getattr(effect, name):.4g}") for name in numbers}
            for effect in self
        ]

    def plot(self) -> Any:
        """A forest plot: each effect in points with its interval (a matplotlib Figure)."""
        from harnesslab.analysis.plots import forest

        outcome = "solve rate" if self.outcome == "solved" else "progress"
        return forest(self, outcome=outcome, level=self.level, episodes=self.episodes)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def estimate(trials: Iterable[Trial], names: Iterable[str] | None = None, *, level: float = 0.95) -> Effects:
    """The effects of the interventions ``names`` (default: all that were ever on) on the outcome of an episode.

    Each counts by *intention to treat*: switched on, whether it fired or not, which keeps the comparison randomised. Where no
    episode was solved, ``progress`` takes the place of ``solved``, as a quasi-binomial outcome whose scale is estimated.
    An intervention that was always on, or never, keeps its prior. The order of the trials does not matter.
    """
    rows = sorted(trials, key=lambda t: (t.task, sorted(t.on), t.solved, t.progress, sorted(t.fired)))
    wrong = next((t for t in rows if not 0 <= t.progress <= 1), None)
    if wrong is not None:
        raise ConfigError(f"the progress of an episode on {wrong.task!r:.60} is {wrong.progress!r}; it must be 0 to 1")
    if not 0 < level < 1:
        raise ConfigError(f"level={level!r} must be between 0 and 1, for example 0.95")
    known = sorted(set(names) if names is not None else {name for trial in rows for name in trial.on})
    outcome: Outcome = "solved" if not rows or any(trial.solved for trial in rows) else "progress"
    tasks = sorted({trial.task for trial in rows})
    on = np.array([[name in trial.on for name in known] for trial in rows], dtype=float).reshape(len(rows), len(known))
    result = np.array([trial.solved if outcome == "solved" else trial.progress for trial in rows], dtype=float)
    fit = _fit(_design([trial.task for trial in rows], tasks, on), result, len(tasks), graded=outcome == "progress")
    fired = Counter(name for trial in rows for name in trial.fired & trial.on)
    effects = [_effect(name, place, on, fit, fired[name], len(tasks), level) for place, name in enumerate(known)]
    return Effects(effects, outcome=outcome, episodes=len(rows), tasks=len(tasks), level=level)


@dataclass(frozen=True, slots=True)
class _Fit:
    """The mode, its covariance, and the design matrix: mean, tasks, interventions."""

    mode: np.ndarray
    covariance: np.ndarray
    design: np.ndarray


def _design(of: Sequence[str], tasks: Sequence[str], on: np.ndarray) -> np.ndarray:
    place = {task: index for index, task in enumerate(tasks)}
    dummies = np.zeros((len(of), len(tasks)))
    dummies[np.arange(len(of)), [place[task] for task in of]] = 1.0
    return np.hstack([np.ones((len(of), 1)), dummies, on])


def _fit(design: np.ndarray, result: np.ndarray, tasks: int, *, graded: bool) -> _Fit:
    """The posterior mode by scipy's trust-region Newton method; the posterior is log-concave, so there is one mode."""
    effects = design.shape[1] - 1 - tasks
    precision = np.concatenate([[MEAN_SD**-2], np.full(tasks, TASK_SD**-2), np.full(effects, EFFECT_SD**-2)])
    mode, scale = _mode(design, result, precision, 1.0), 1.0
    if graded and len(result):
        # Pearson's statistic over the residual degrees of freedom, those of a penalised fit.
        for _ in range(2):
            share = special.expit(design @ mode)
            weight = share * (1 - share) / scale
            curvature = (design.T * weight) @ design
            used = float(np.trace(linalg.solve(curvature + np.diag(precision), curvature, assume_a="pos")))
            pearson = float(np.sum((result - share) ** 2 / np.maximum(share * (1 - share), 1e-6)))
            scale = min(1.0, max(LEAST_SCALE, pearson / max(1.0, len(result) - used)))
            mode = _mode(design, result, precision, scale)
    share = special.expit(design @ mode)
    hessian = (design.T * (share * (1 - share) / scale)) @ design + np.diag(precision)
    return _Fit(mode, linalg.inv(hessian), design)


def _mode(design: np.ndarray, result: np.ndarray, precision: np.ndarray, scale: float) -> np.ndarray:
    def loss(theta: np.ndarray) -> float:
        eta = design @ theta
        return float(np.sum(np.logaddexp(0, eta) - result * eta) / scale + 0.5 * np.sum(precision * theta**2))

    def slope(theta: np.ndarray) -> np.ndarray:
        return design.T @ (special.expit(design @ theta) - result) / scale + precision * theta

    def curve(theta: np.ndarray) -> np.ndarray:
        share = special.expit(design @ theta)
        return (design.T * (share * (1 - share) / scale)) @ design + np.diag(precision)

    start = np.zeros(design.shape[1])
    found = optimize.minimize(loss, start, jac=slope, hess=curve, method="trust-exact", options={"gtol": 1e-7})
    return np.asarray(found.x)


def _effect(name: str, place: int, on: np.ndarray, fit: _Fit, fired: int, tasks: int, level: float) -> Effect:
    column = 1 + tasks + place
    logit, error = float(fit.mode[column]), float(np.sqrt(fit.covariance[column, column]))
    half = float(stats.norm.ppf(0.5 + level / 2)) * error
    low, middle, high = (_points(fit, column, value) for value in (logit - half, logit, logit + half))
    return Effect(
        name=name,
        on=int(on[:, place].sum()),
        off=int((1 - on[:, place]).sum()),
        fired=fired,
        points=middle,
        low=min(low, middle),
        high=max(high, middle),
        helps=float(stats.norm.cdf(logit / error)),
        logit=logit,
        error=error,
    )


def _points(fit: _Fit, column: int, value: float) -> float:
    """The mean change in percentage points if the effect has this ``value``, the rest moving along as the posterior has it."""
    if not len(fit.design):
        return 0.0
    lean = fit.covariance[:, column] / fit.covariance[column, column]
    theta = fit.mode + lean * (value - fit.mode[column])
    without = fit.design @ theta - fit.design[:, column] * theta[column]
    return 100 * float(np.mean(special.expit(without + value) - special.expit(without)))


def likely(effects: Effects, above: float) -> list[str]:
    """Names of the interventions whose probability to help is above a bound, the most likely first."""
    return [effect.name for effect in effects if effect.helps > above]


def doubtful(effects: Effects, below: float, among: Set[str]) -> list[str]:
    """Those ``among`` the interventions whose probability to help has fallen below a bound."""
    return [effect.name for effect in effects if effect.name in among and effect.helps < below]
