"""Effects from randomised episodes: planted ones are found, intervals cover, nothing diverges, order does not matter."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.analysis.effects import Effects, Trial, doubtful, estimate, likely
from harnesslab.errors import ConfigError


def world(
    effects: Mapping[str, float],
    seed: int,
    *,
    tasks: int = 24,
    rounds: int = 4,
    start: float = -1.0,
    spread: float = 1.5,
) -> list[Trial]:
    """Episodes in complementary pairs, drawn from the model itself."""
    dice = np.random.default_rng(seed)
    intercepts = dice.normal(start, spread, tasks)
    names, trials = sorted(effects), []
    for _ in range(rounds):
        for first in range(0, tasks, 2):
            half = frozenset(name for name in names if dice.random() < 0.5)
            for task, on in ((first, half), (first + 1, frozenset(names) - half)):
                share = 1 / (1 + np.exp(-intercepts[task] - sum(effects[name] for name in on)))
                trials.append(Trial(f"t{task}", on, bool(dice.random() < share), fired=on))
    return trials


PLANTED = {"a": 2.0, "b": 1.5, "c": 0.0, "d": 0.0, "e": -1.5, "f": 0.0}


def test_planted_effects_are_found_and_ordered() -> None:
    found = estimate(world(PLANTED, 1, rounds=12))
    assert found[0].name == "a" and found[-1].name == "e"
    assert found["a"].helps > 0.99 and found["e"].helps < 0.01
    assert found["a"].low > 0 > found["e"].high
    assert abs(found["c"].points) < 12
    assert likely(found, 0.8)[:2] == ["a", "b"] and doubtful(found, 0.05, {"e", "a"}) == ["e"]


def true_points(effects: Mapping[str, float], trials: list[Trial], intercepts: np.ndarray, name: str) -> float:
    changes = []
    for trial in trials:
        rest = intercepts[int(trial.task[1:])] + sum(effects[other] for other in trial.on if other != name)
        changes.append(1 / (1 + np.exp(-rest - effects[name])) - 1 / (1 + np.exp(-rest)))
    return 100 * float(np.mean(changes))


@pytest.mark.parametrize("start", [-3.0, -1.0, 1.0])
def test_intervals_cover_the_true_effects(start: float) -> None:
    covered = total = 0
    for seed in range(40):
        dice = np.random.default_rng(1000 + seed)
        effects = {name: float(dice.normal(0, 1)) for name in "abcdef"}
        trials = world(effects, seed, start=start, rounds=3)
        intercepts = np.random.default_rng(seed).normal(start, 1.5, 24)
        found = estimate(trials)
        for name, effect in effects.items():
            truth = true_points(effects, trials, intercepts, name)
            covered += found[name].low <= truth <= found[name].high
            total += 1
            assert (found[name].points > 0) == (found[name].helps > 0.5), effect
    assert 0.90 <= covered / total <= 0.995, covered / total


def test_the_probability_to_help_is_calibrated() -> None:
    """Of effects drawn from the prior and given 0.8 to 0.95, about that share is above zero."""
    good = []
    for seed in range(80):
        dice = np.random.default_rng(5000 + seed)
        effects = {name: float(dice.normal(0, 1)) for name in "abcdef"}
        found = estimate(world(effects, seed, rounds=2))
        good += [effects[effect.name] > 0 for effect in found if 0.8 < effect.helps < 0.95]
    assert len(good) > 50 and 0.78 < np.mean(good) < 0.97


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=10, deadline=None)
def test_perfect_separation_does_not_diverge(seed: int, all_solved: bool) -> None:
    dice = random.Random(seed)
    trials = [
        Trial(f"t{dice.randrange(6)}", frozenset({"x"} if dice.random() < 0.5 else ()), all_solved) for _ in range(20)
    ]
    perfect = [Trial(trial.task, trial.on, "x" in trial.on) for trial in trials]
    for found in (estimate(trials, ["x"]), estimate(perfect, ["x"])):
        effect = found["x"]
        assert abs(effect.logit) < 5 and 0 < effect.error <= 1.0001
        assert -100 <= effect.low <= effect.points <= effect.high <= 100


@given(st.randoms(use_true_random=False), st.integers(0, 50))
@settings(max_examples=5, deadline=None)
def test_the_order_of_episodes_and_names_does_not_matter(dice: random.Random, seed: int) -> None:
    trials = world(PLANTED, seed, rounds=1)
    shuffled = dice.sample(trials, len(trials))
    names = dice.sample(sorted(PLANTED), len(PLANTED))
    assert estimate(trials).to_json() == estimate(shuffled, names).to_json()


def test_exclusive_interventions_are_estimated_apart() -> None:
    dice = np.random.default_rng(3)
    trials = []
    for number in range(300):
        name = ("good", "bad", None)[number % 3]
        share = {"good": 0.8, "bad": 0.2, None: 0.5}[name]
        trials.append(Trial(f"t{number % 20}", frozenset({name} - {None}), bool(dice.random() < share)))
    found = estimate(trials)
    assert found["good"].helps > 0.95 and found["bad"].helps < 0.05


def test_graded_outcomes_are_used_where_nothing_was_solved() -> None:
    dice = np.random.default_rng(0)
    trials = []
    for number in range(96):
        on = frozenset(name for name in "xyz" if dice.random() < 0.5)
        progress = float(np.clip(0.1 + 0.1 * (number % 4) + 0.2 * ("x" in on) + dice.normal(0, 0.05), 0, 1))
        trials.append(Trial(f"t{number % 24}", on, False, progress))
    found = estimate(trials)
    assert found.outcome == "progress" and found["x"].helps > 0.99
    assert 12 < found["x"].points < 28 and abs(found["y"].points) < 8
    assert "progress" in repr(found)
    one = [*trials, Trial("t0", frozenset(), True, 1.0)]
    assert estimate(one).outcome == "solved"


def test_counts_say_on_off_and_fired() -> None:
    trials = [
        Trial("a", frozenset({"x"}), True, fired=frozenset({"x"})),
        Trial("a", frozenset(), False, fired=frozenset({"x"})),
        Trial("b", frozenset({"x"}), True),
    ]
    effect = estimate(trials)["x"]
    assert (effect.on, effect.off, effect.fired) == (2, 1, 1)


def test_nothing_played_leaves_the_prior() -> None:
    found = estimate([], ["x"])
    assert (found["x"].helps, found["x"].points, found["x"].logit) == (0.5, 0.0, 0.0)
    assert estimate([]).to_json() == []


def test_effects_show_themselves_escaped() -> None:
    found = estimate([Trial("t", frozenset({"contract/<b>"}), True), Trial("t", frozenset(), False)])
    assert "<b>" not in found._repr_html_() and "&lt;b&gt;" in found._repr_html_()
    assert "P(helps)" in repr(found) and "never fired" in repr(found)
    assert found.plot()._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(KeyError, match="contract/<b>"):
        found["nobody"]
    assert isinstance(found, Effects)


def test_wrong_numbers_are_named() -> None:
    with pytest.raises(ConfigError, match="progress"):
        estimate([Trial("t", frozenset(), False, 2.0)])
    with pytest.raises(ConfigError, match="level"):
        estimate([], level=1.0)
