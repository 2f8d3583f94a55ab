"""Criteria: their rules, what untrusted episodes may do, and when a candidate is given up."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.errors import ConfigError, UnmeasurableRun
from harnesslab.rollout.records import Episode
from harnesslab.trainer.anytime import AnytimeTest
from harnesslab.trainer.criterion import (
    Criterion,
    Judgement,
    NetSolve,
    PairedTest,
    StrictPareto,
    ask,
    decides,
    foregone,
    hopeless,
    is_sequential,
    judge_all,
)
from harnesslab.trainer.evaluate import judged
from harnesslab.trainer.pairs import Pair, flips, pair_up, prefix, unplayed

CRITERIA: list[Criterion] = [StrictPareto(), NetSolve(), NetSolve(margin=2), PairedTest(), AnytimeTest()]


def episode(task: str, solved: bool, **fields: object) -> Episode:
    return replace(Episode(task, "f", "", solved=solved, progress=float(solved)), **fields)  # type: ignore[arg-type]


def pairs(text: str) -> list[Pair]:
    """'01' is a task that was failed and is solved now; '?' an unscorable side."""
    made = []
    for number, (before, after) in enumerate(text.split()):
        sides = [
            episode(f"t{number}", mark == "1", status="unscorable" if mark == "?" else "finished")
            for mark in (before, after)
        ]
        made.append(Pair(*sides))
    return made


def test_strict_pareto_counts_gains_and_refuses_any_loss() -> None:
    assert StrictPareto().judge(pairs("01 01 11 00")).value == -2
    lost = StrictPareto().judge(pairs("01 01 10"))
    assert lost.value == math.inf and "lost" in lost.why


def test_ties_fall_to_the_secondary_metrics_in_order() -> None:
    before, after = episode("t", False, progress=0.5, invalid=3), episode("t", False, progress=0.5, invalid=1)
    published = StrictPareto(tie_alpha=None)
    judgement = published.judge([Pair(before, after)])
    # progress is equal, so the first difference is the second metric: worth 2^-2.
    assert judgement.value == -0.25 and "invalid better" in judgement.why
    worse_first = published.judge([Pair(before, replace(after, progress=0.4))])
    assert worse_first.value == 0.5 - 0.25
    assert published.judge([Pair(before, before)]).value == 0


def tie(changes: list[int], metric: str = "invalid") -> list[Pair]:
    """Tasks that fail before and after, on which the metric changes so much."""
    field = {"steps": "length"}.get(metric, metric)
    return [
        Pair(episode(f"m{n}", False, **{field: 10}), episode(f"m{n}", False, **{field: 10 + change}))
        for n, change in enumerate(changes)
    ]


@pytest.mark.parametrize(
    "criterion", [StrictPareto(), NetSolve(metrics=("progress", "invalid")), NetSolve(2, ("invalid",))]
)
def test_a_tie_is_won_on_metrics_only_beyond_chance(criterion: Criterion) -> None:
    assert criterion.judge(tie([-1, -1, -5])).value >= 0, "three tasks may be chance"
    assert criterion.judge(tie([-1] * 9 + [4] * 8)).value >= 0, "the mean alone says nothing"
    won = criterion.judge(tie([-1] * 8 + [0] * 5))
    assert won.value < 0 and "invalid better" in won.why
    assert criterion.judge(tie([1] * 8)).value > 0


def test_a_gain_below_the_margin_is_worth_no_less_than_a_tie() -> None:
    criterion = NetSolve(margin=2, metrics=("invalid",))
    assert criterion.judge(tie([-1] * 8)).value < 0
    assert criterion.judge([*tie([-1] * 8), *pairs("01")]).value < 0
    assert criterion.judge([*tie([-1] * 8), *pairs("10")]).value > 0


def test_net_solve_trades_losses_for_gains() -> None:
    assert NetSolve().judge(pairs("01 01 10")).value == -1
    assert NetSolve(margin=2).judge(pairs("01 01 10")).value > 0
    assert NetSolve().judge(pairs("11 00")).value > 0


def test_the_paired_test_leaves_chance_undecided() -> None:
    few = PairedTest().judge(pairs("01 01 01"))
    assert few.undecided and few.statistics["p"] == pytest.approx(0.125)
    many = PairedTest().judge(pairs("01 " * 6))
    assert not many.undecided and many.value == -6 and many.statistics["p"] == pytest.approx(1 / 64)
    assert PairedTest().judge(pairs("10 00")).value > 0


def test_unscorable_episodes_that_could_turn_the_verdict_are_refused() -> None:
    with pytest.raises(UnmeasurableRun, match="could change the verdict"):
        judge_all(StrictPareto(), pairs("01 1?"))
    assert judge_all(NetSolve(), pairs("01 01 01 1?")).value == -3
    with pytest.raises(UnmeasurableRun, match="no task was scorable"):
        judge_all(StrictPareto(), pairs("?? 0?"))


def test_a_candidate_is_given_up_once_nothing_can_save_it() -> None:
    left = [episode("x", False), episode("y", True)]
    assert hopeless(StrictPareto(), pairs("10 01"), left)
    assert not hopeless(StrictPareto(), pairs("00"), left)
    assert hopeless(NetSolve(), pairs("10 10"), left)
    assert not hopeless(NetSolve(), pairs("10"), [episode("x", False), episode("z", False)])


@pytest.mark.parametrize(
    ("before", "after", "gained", "lost"),
    [("111", "110", 0, 0), ("111", "100", 0, 1), ("000", "001", 0, 0), ("001", "011", 1, 0), ("11", "10", 0, 1)],
)
def test_the_repeats_of_a_task_count_as_one_task(before: str, after: str, gained: int, lost: int) -> None:
    made = [
        Pair(episode("t", b == "1", repeat=n), episode("t", a == "1", repeat=n))
        for n, (b, a) in enumerate(zip(before, after, strict=True))
    ]
    assert dict(NetSolve().judge(made).statistics) == {"gained": gained, "lost": lost}
    assert math.isinf(StrictPareto(metrics=()).judge(made).value) == bool(lost)
    assert [(flip.before, flip.after) for flip in flips(made, None)] == [(False, True)] * gained + [
        (True, False)
    ] * lost


marks = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12)


def built(outcomes: list[tuple[bool, bool]]) -> list[Pair]:
    return [Pair(episode(f"t{n}", b), episode(f"t{n}", a)) for n, (b, a) in enumerate(outcomes)]


METRICS = st.lists(st.sampled_from(["progress", "invalid", "steps", "tokens"]), max_size=3, unique=True).map(tuple)
ALPHAS = st.sampled_from([None, 0.05, 0.6])
ANY: st.SearchStrategy[Criterion] = st.one_of(
    st.builds(StrictPareto, metrics=METRICS, tie_alpha=ALPHAS),
    st.builds(NetSolve, margin=st.integers(1, 4), metrics=METRICS, tie_alpha=ALPHAS),
    st.builds(PairedTest, alpha=st.sampled_from([0.05, 0.4])),
    st.builds(
        AnytimeTest,
        alpha=st.sampled_from([0.1, 0.6]),
        worthwhile=st.sampled_from([0.1, 0.4]),
        beta=st.sampled_from([0.2, 0.7]),
        look=st.integers(1, 3),
        promoted=st.integers(0, 2),
        passes=st.integers(1, 2),
    ),
)


@st.composite
def panels(draw: st.DrawFn) -> list[Pair]:
    """Whole panels, in any order of tasks, with repeats and with metrics that move."""
    repeats = draw(st.integers(1, 3))
    number = st.integers(0, 3)
    made = []
    for task in draw(st.permutations(range(draw(st.integers(1, 9))))):
        for repeat in range(repeats):
            sides = []
            for _ in range(2):
                solved = draw(st.booleans())
                sides.append(
                    episode(
                        f"t{task}",
                        solved,
                        repeat=repeat,
                        progress=1.0 if solved else draw(number) / 4,
                        invalid=draw(number),
                        length=draw(number),
                        prompt_tokens=draw(number),
                    )
                )
            made.append(Pair(*sides))
    return made


def chosen(judgement: Judgement) -> str:
    return "undecided" if judgement.undecided else "promote" if judgement.value < 0 else "reject"


@given(panels(), ANY, st.data())
@settings(max_examples=150, deadline=None)
def test_stopping_early_never_changes_a_verdict(whole: list[Pair], criterion: Criterion, data: st.DataObject) -> None:
    """Whatever was played when the measurement stopped, in whatever order, the verdict is that of the whole panel."""
    final = chosen(criterion.judge(whole))
    keys = [pair.before.key for pair in whole]
    before = [pair.before for pair in whole]
    played = data.draw(st.permutations(whole))[: data.draw(st.integers(0, len(whole)))]
    after = [pair.after for pair in whole if pair in played]
    if is_sequential(criterion):
        if decides(criterion, prefix(keys, before, after)):
            assert chosen(judged(criterion, pair_up(before, after), unplayed(before, after))) == final
        return
    left, done = unplayed(before, after), pair_up(before, after)
    if left and foregone(criterion, done, left) is not None:
        assert final == "reject"
        assert chosen(judged(criterion, done, left)) == final


@given(panels(), ANY)
@settings(max_examples=100, deadline=None)
def test_every_criterion_is_deterministic_and_plain(whole: list[Pair], criterion: Criterion) -> None:
    assert ask(criterion, whole) == ask(criterion, whole)


@given(marks)
def test_swapping_the_sides_never_selects_both(outcomes: list[tuple[bool, bool]]) -> None:
    for criterion in CRITERIA:
        there = criterion.judge(built(outcomes)).value
        back = criterion.judge(built([(after, before) for before, after in outcomes])).value
        assert not (there < 0 and back < 0)


def test_flips_name_what_nothing_new_explains() -> None:
    made = [
        Pair(episode("a", False), episode("a", True, fired={"action/new": 2})),
        Pair(episode("b", True), episode("b", False)),
        Pair(episode("c", True), episode("c", True)),
    ]
    found = {flip.task: flip for flip in flips(made, frozenset({"action/new"}))}
    assert set(found) == {"a", "b"}
    assert not found["a"].incidental and found["b"].incidental
    assert not any(flip.incidental for flip in flips(made, None))


def test_pairs_need_both_sides() -> None:
    before = [episode("a", True), episode("b", True)]
    assert [pair.task for pair in pair_up(before, [episode("b", False), episode("z", True)])] == ["b"]


def test_an_unknown_metric_is_named() -> None:
    with pytest.raises(ConfigError, match="speed"):
        StrictPareto(metrics=("speed",))
