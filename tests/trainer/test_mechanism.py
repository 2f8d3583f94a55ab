"""The mechanism must fire: what cannot come from a candidate promotes nothing, and drift is noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.rollout.records import Episode
from harnesslab.trainer.criterion import Criterion
from harnesslab.trainer.mechanism import QUIET, explained, quiet, silent
from harnesslab.trainer.pairs import Pair
from tests.trainer.test_trainer import trainer
from tests.worlds import CorridorWorld

NEW = frozenset({"action/new"})
CRITERIA: list[Criterion] = [
    hl.StrictPareto(),
    hl.StrictPareto(tie_alpha=None),
    hl.NetSolve(),
    hl.NetSolve(margin=2, metrics=("invalid",)),
    hl.PairedTest(alpha=0.4),
    hl.AnytimeTest(alpha=0.9),
]


def pair(task: int, before: bool, after: bool, fires: bool, invalid: int = 0) -> Pair:
    fired = {"action/new": 1} if fires else {}
    return Pair(
        Episode(f"t{task}", "f", "", solved=before, invalid=2),
        Episode(f"t{task}", "f", "", solved=after, invalid=invalid, fired=fired),
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_gains_where_nothing_fired_promote_nothing(criterion: Criterion) -> None:
    made = [pair(n, False, True, False) for n in range(20)] + [pair(99, False, False, True, invalid=2)]
    judgement = criterion.judge(made)
    assert judgement.value < 0 and not judgement.undecided
    said = explained(criterion, judgement, made, NEW)
    assert said.undecided or said.value >= 0
    assert "20 tasks where none of its interventions fired" in said.why


@pytest.mark.parametrize("criterion", CRITERIA)
def test_gains_where_it_fired_still_promote(criterion: Criterion) -> None:
    made = [pair(n, False, True, True) for n in range(20)]
    judgement = criterion.judge(made)
    assert explained(criterion, judgement, made, NEW) == judgement
    mixed = [*made, *(pair(50 + n, False, True, False) for n in range(5))]
    said = explained(criterion, criterion.judge(mixed), mixed, NEW)
    assert said.value < 0 and not said.undecided
    assert explained(criterion, criterion.judge(mixed), mixed, None) == criterion.judge(mixed), "the base concerns all"


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=25),
    st.sampled_from(CRITERIA),
)
@settings(max_examples=150, deadline=None)
def test_it_never_turns_a_no_into_a_yes(outcomes: list[tuple[bool, bool, bool, int]], criterion: Criterion) -> None:
    made = [pair(n, *outcome) for n, outcome in enumerate(outcomes)]
    judgement = criterion.judge(made)
    said = explained(criterion, judgement, made, NEW)
    if judgement.undecided or judgement.value >= 0:
        assert said.undecided or said.value >= 0
    if silent(made, NEW):
        assert said.value > 0 and "fired" in said.why


def test_a_long_silence_is_enough() -> None:
    made = [pair(n, False, False, n == QUIET) for n in range(QUIET + 5)]
    assert quiet(made, NEW) and quiet(made[:QUIET], NEW)
    assert not quiet(made[: QUIET - 1], NEW) and not quiet(made, None)
    assert not quiet([pair(0, False, False, True), *made[1:]], NEW)


NEVER = "kind: snap\nabout: Snap near misses.\n"


class Long(CorridorWorld):
    """Forty gate tasks of one room."""

    def tasks(self, split: Any) -> list[Any]:
        from harnesslab.rollout.env import Task

        return [Task(f"{split}-{n}", split, "f", n, {"length": 1}) for n in range(40 if split == "gate" else 4)]


def test_a_candidate_that_never_fires_is_rejected_cheaply(open_lab: Callable[..., Any]) -> None:
    lab = open_lab(env=Long())
    estimator = hl.ManualEstimator(scan=False)
    estimator.add_text("action/snap.yaml", NEVER)
    made = hl.Trainer(
        lab,
        hl.LLM.scripted(lambda m: "Action: left"),
        estimator,
        criterion=hl.NetSolve(),
        settings={"progress": False},
    )
    made.measure("gate")
    loss = made.evaluate(made.estimator.propose(made.diagnose(), lab.harness())[0])
    assert loss.verdict.decision == "reject" and "none of its interventions fired" in loss.verdict.why
    assert len(loss.measured) == QUIET and loss.verdict.settled_early


def test_flips_without_a_cause_on_a_deterministic_backbone_are_drift(open_lab: Callable[..., Any]) -> None:
    """The server changed after the baseline was stored; the candidate, which never fires, must not profit."""
    lab = open_lab()
    answer = {"now": "left"}
    llm = hl.LLM.scripted(lambda messages: f"Action: {answer['now']}")
    made = trainer(lab, llm=llm)
    made.criterion = hl.NetSolve()
    made.estimator.add_text("action/snap.yaml", NEVER)  # type: ignore[attr-defined]
    proposal = made.propose()[0]
    old = made.measure("gate")
    assert old.solved == 0
    answer["now"] = "right"
    verdict = made.evaluate(proposal).verdict
    assert verdict.decision == "reject" and "the baseline was measured again" in verdict.why
    assert verdict.runs["baseline"] != old.id and len(verdict.solved["baseline"]) == 8
    assert made.measure("gate").solved == 8, "the new score is the baseline's"
