"""The statistics against values worked out by hand or by definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.analysis.statistics import clustered, minimum_gain, paired_test, wilson


def test_wilson_known_values() -> None:
    # Newcombe 1998, table I: 81 of 263 is 0.2553 to 0.3662; 0 of 20 is 0 to 0.1611.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_holds_the_estimate(solved: int, total: int) -> None:
    solved = min(solved, total)
    low, high = wilson(solved, total)
    assert -1e-9 <= low <= solved / total <= high + 1e-9 <= 1 + 2e-9


def test_mcnemar_is_the_binomial_tail() -> None:
    pairs = [(f"t{n}", False, True) for n in range(5)] + [("x", True, False), ("y", True, True)]
    result = paired_test(pairs)
    assert (result.gained, result.lost) == (5, 1)
    assert result.p == pytest.approx(7 / 64)  # P(X >= 5), X ~ Bin(6, 1/2)
    assert paired_test([("a", True, True)]).p == 1.0


def test_repeats_of_one_task_do_not_count_as_many_tasks() -> None:
    one_task = paired_test([("t", False, True)] * 20)
    assert one_task.method == "sign-flip permutation" and one_task.p >= 0.5
    five = paired_test([(f"t{n}", False, True) for n in range(5) for _ in range(4)])
    assert five.p == pytest.approx(1 / 32)


def test_a_panel_has_a_least_gain_that_it_can_show() -> None:
    # 5 gains and no noise are significant at 5 % for sure; 4 never are (1/16).
    assert minimum_gain(20) == 5
    assert minimum_gain(4) is None
    quiet, noisy = minimum_gain(40, 0.0), minimum_gain(40, 0.2)
    assert quiet is not None and noisy is not None and noisy > quiet


@pytest.mark.parametrize("shape", [(0.3, 0.3), (1, 1), (4, 4), (0.5, 4)], ids=["bimodal", "even", "alike", "rare"])
@pytest.mark.parametrize("repeats", [1, 2, 5])
@pytest.mark.parametrize("tasks", [10, 40])
def test_the_interval_covers_the_rate_however_tasks_differ(
    tasks: int, repeats: int, shape: tuple[float, float]
) -> None:
    dice, runs = np.random.default_rng(tasks * 10 + repeats), 200
    rate = shape[0] / sum(shape)
    won = dice.binomial(repeats, dice.beta(*shape, (runs, tasks)))
    covered = sum(low <= rate <= high for low, high in (clustered(list(row / repeats), tasks * repeats) for row in won))
    # 95%, less three standard errors of this simulation and what an approximate interval may miss on small panels.
    assert covered >= 0.89 * runs


def test_the_interval_of_episodes_would_be_too_narrow() -> None:
    dice = np.random.default_rng(1)
    won = dice.binomial(5, dice.beta(0.3, 0.3, (200, 40)))
    naive = [wilson(int(row.sum()), 200) for row in won]
    assert sum(low <= 0.5 <= high for low, high in naive) < 0.85 * 200
