"""The anytime-valid test: what it promises is checked by simulation, for one candidate and for a training of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

import harnesslab as hl
from harnesslab.errors import ConfigError
from harnesslab.ledger import Verdict
from harnesslab.llm import Completion
from harnesslab.rollout.records import Episode
from harnesslab.trainer.pairs import Pair
from tests.trainer.test_trainer import RIGHT, trainer

SHAPES = {"nearly deterministic": (0.05, 0.05), "mixed": (0.5, 0.5), "noisy": (5, 5)}


def panel(dice: np.random.Generator, before: np.ndarray, after: np.ndarray, repeats: int = 1) -> list[Pair]:
    """Pairs of episodes that solve with these probabilities, one a task."""
    made = []
    for task, (p, q) in enumerate(zip(before, after, strict=True)):
        for repeat in range(repeats):
            sides = [Episode(f"t{task}", "f", "", repeat, solved=bool(dice.random() < share)) for share in (p, q)]
            made.append(Pair(*sides))
    return made


def decision(test: hl.AnytimeTest, pairs: list[Pair]) -> str:
    judgement = test.judge(pairs)
    return "undecided" if judgement.undecided else "promote" if judgement.value < 0 else "reject"


def at_most(count: int, trials: int, rate: float) -> bool:
    """Whether so many of the trials are compatible with the rate: an exact test at 0.1%, so that the check can fail."""
    return stats.binom.sf(count - 1, trials, rate) > 1e-3


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tasks", [10, 60])
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_candidate_that_changes_nothing_is_promoted_at_most_at_the_level(
    shape: str, tasks: int, repeats: int
) -> None:
    dice = np.random.default_rng(tasks + repeats)
    test, trials, promoted = hl.AnytimeTest(alpha=0.2), 200, 0
    for _ in range(trials):
        share = dice.beta(*SHAPES[shape], size=tasks)
        promoted += decision(test, panel(dice, share, share, repeats)) == "promote"
    assert at_most(promoted, trials, test.level), promoted


def test_a_change_that_moves_tasks_at_random_is_promoted_at_most_at_the_level() -> None:
    """A placebo under greedy decoding: every task has an outcome of its own for each wording."""
    dice = np.random.default_rng(0)
    test, promoted = hl.AnytimeTest(alpha=0.2), 0
    for _ in range(400):
        before, after = (dice.random((2, 40)) < 0.4).astype(float)
        promoted += decision(test, panel(dice, before, after)) == "promote"
    assert at_most(promoted, 400, test.level), promoted


@pytest.mark.parametrize("shape", SHAPES)
def test_a_training_of_fifty_null_candidates_rarely_promotes_one(shape: str) -> None:
    """With no true gain, any promotion is false: the share of trainings that have one is at most alpha."""
    dice = np.random.default_rng(5)
    alpha, trainings, wrong = 0.1, 30, 0
    for _ in range(trainings):
        share, promoted = dice.beta(*SHAPES[shape], size=30), 0
        for look in range(1, 51):
            test = hl.AnytimeTest(alpha).at(look, promoted, 1)
            promoted += decision(test, panel(dice, share, share)) == "promote"
        wrong += promoted > 0
    assert at_most(wrong, trainings, alpha), wrong


def test_half_the_candidates_helping_the_share_of_false_promotions_is_small() -> None:
    dice = np.random.default_rng(6)
    shares, found = [], 0
    for _ in range(40):
        promoted = false = 0
        for look in range(1, 21):
            share = dice.beta(1, 2, size=60)
            helps = look % 2 == 0
            after = np.minimum(1, share + 0.35 * helps)
            if decision(hl.AnytimeTest(0.1).at(look, promoted, 1), panel(dice, share, after)) == "promote":
                promoted, false, found = promoted + 1, false + (not helps), found + helps
        shares.append(false / max(1, promoted))
    assert np.mean(shares) <= 0.1 and found > 40 * 4


def test_a_worthwhile_gain_is_rejected_at_most_with_probability_beta() -> None:
    dice = np.random.default_rng(7)
    test, rejected = hl.AnytimeTest(worthwhile=0.1, beta=0.2), 0
    for _ in range(400):
        share = dice.beta(1, 1, size=60) * 0.9
        rejected += decision(test, panel(dice, share, share + 0.1)) == "reject"
    assert at_most(rejected, 400, test.beta), rejected


def test_it_stops_at_the_first_decision_either_way() -> None:
    test = hl.AnytimeTest()
    gains = [Pair(Episode(f"t{n}", "f", ""), Episode(f"t{n}", "f", "", solved=True)) for n in range(20)]
    losses = [Pair(Episode(f"l{n}", "f", "", solved=True), Episode(f"l{n}", "f", "")) for n in range(20)]
    assert decision(test, gains[: test.needs]) == "promote" and decision(test, gains[: test.needs - 1]) == "undecided"
    assert test.judge([*gains[: test.needs], *losses]).value == -test.needs, "what comes later changes nothing"
    assert decision(test, losses) == "reject" and test.judge(losses).statistics["tasks"] < 5
    nothing = [Pair(pair.before, pair.before) for pair in gains]
    assert decision(test, nothing) == "undecided"
    many = [Pair(Episode(f"t{n}", "f", ""), Episode(f"t{n}", "f", "")) for n in range(40)]
    assert decision(test, many) == "reject" and test.judge(many).statistics["tasks"] < 30


def test_levels_follow_the_looks_and_the_promotions() -> None:
    levels = [hl.AnytimeTest(0.1).at(look, 0, 1).level for look in range(1, 2000)]
    assert levels[0] == pytest.approx(0.05) and sum(levels) <= 0.1
    assert hl.AnytimeTest(0.1).at(4, 3, 1).level == pytest.approx(4 * hl.AnytimeTest(0.1).at(4, 0, 1).level)
    assert hl.AnytimeTest(0.1).at(1, 50, 1).level == 0.1


def test_huge_panels_keep_their_numbers_finite() -> None:
    many = [Pair(Episode(f"t{n}", "f", ""), Episode(f"t{n}", "f", "", solved=True)) for n in range(3000)]
    for pairs in (many, [Pair(pair.after, pair.before) for pair in many]):
        assert all(np.isfinite(v) for v in hl.AnytimeTest(passes=2).judge(pairs).statistics.values())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"alpha": 0}, "alpha"), ({"beta": 1.0}, "beta"), ({"worthwhile": True}, "worthwhile"), ({"look": 0}, "look")],
)
def test_wrong_settings_are_named(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        hl.AnytimeTest(**arguments)


# -- in a training ---------------------------------------------------------------------------------------------------


class Coin:
    """A sampled model: goes right with a probability that the hint raises, drawn by task, step and repeat."""

    constrains = False

    def __init__(self, with_hint: float, without: float):
        self.shares = {True: with_hint, False: without}
        self.calls = 0

    identity: ClassVar[dict[str, Any]] = {"model": "coin", "sampling": {"temperature": 1.0}}

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        self.calls += 1
        text = str(request.messages)
        share = self.shares["on the right" in text]
        right = np.random.default_rng([zlib.crc32(text.encode()), repeat]).random() < share
        return Completion("Action: right" if right else "Action: left", model="coin")


def test_looks_are_counted_in_git_and_draw_anew(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT, llm=Coin(0.5, 0.5))
    made.criterion = hl.AnytimeTest(beta=0.01)
    loss = made.evaluate(made.propose(made.diagnose(made.measure()))[0])
    first = loss.verdict
    assert first.decision == "undecided" and first.statistics["looks"] == [1]
    assert first.statistics["resolvable"] == loss.judged.statistics["resolvable"] > 0
    assert {episode.repeat for episode in loss.measured} == {episode.repeat for episode in loss.baseline} != {0}
    loss.backward()
    assert made.optimizer.step() is False
    again = trainer(lab, RIGHT, llm=made.llm)
    again.criterion = hl.AnytimeTest(beta=0.01)
    second = again.evaluate(loss.proposal).verdict
    assert second.statistics["looks"] == [1, 2] and second.statistics["passes"] == 2
    assert second.runs != first.runs and second.statistics["level"] < first.statistics["level"]
    assert second.tasks == 8


def test_a_decided_look_is_not_another_one(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT)
    made.criterion = hl.AnytimeTest()
    proposal = made.propose(made.diagnose(made.measure()))[0]
    first, second = made.evaluate(proposal).verdict, made.evaluate(proposal).verdict
    assert first.decision == second.decision == "promote"
    assert replace(first, when="") == replace(second, when="")
    assert first.settled_early and first.statistics["tasks"] < 8
    assert isinstance(Verdict.from_json(first.to_json()), Verdict)
