"""Predictions are conditions: which share of tasks it fires on, which cause of failure disappears, by how much the solve rate moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.ledger import Verdict, read_verdict
from harnesslab.rollout.records import Episode
from harnesslab.trainer.estimators.base import hit_rate
from harnesslab.trainer.history import past_verdicts
from harnesslab.trainer.pairs import Pair
from harnesslab.trainer.predictions import check

NEW = frozenset({"contract/x"})


def pairs(before: str, after: str, fired: str) -> list[Pair]:
    """A pair a letter: ``1`` solved, ``0`` failed; fired where ``1``."""
    found = []
    for place, (b, a, f) in enumerate(zip(before, after, fired, strict=True)):
        one = Episode(f"t{place}", "f", "", solved=b == "1")
        found.append(Pair(one, replace(one, solved=a == "1", fired={"contract/x": 1} if f == "1" else {})))
    return found


def held(prediction: hl.Prediction, *sides: str) -> dict[str, bool]:
    return {name: said["held"] for name, said in check(prediction, pairs(*sides), NEW).items()}


@pytest.mark.parametrize(
    ("fires", "fired", "ok"),
    [(1.0, "1111111111", True), (0.5, "1111111111", False), (0.0, "0000000000", True), (0.5, "1101001010", True),
     (0.9, "1000000000", False), (0.2, "1000000000", True)],
)  # fmt: skip
def test_the_share_of_tasks_it_fires_on(fires: float, fired: str, ok: bool) -> None:
    assert held(hl.Prediction(fires=fires), "0" * 10, "0" * 10, fired) == {"fires": ok}


@pytest.mark.parametrize(
    ("gain", "before", "after", "ok"),
    [(0.5, "0" * 12, "1" * 6 + "0" * 6, True), (0.5, "0" * 12, "0" * 12, False), (-0.2, "0" * 12, "1" * 6 + "0" * 6, False),
     (0.3, "1" * 12, "0" * 4 + "1" * 8, False), (0.0, "10" * 6, "10" * 6, True)],
)  # fmt: skip
def test_the_change_of_the_solve_rate(gain: float, before: str, after: str, ok: bool) -> None:
    assert held(hl.Prediction(gain=gain), before, after, "1" * 12) == {"gain": ok}


@pytest.mark.parametrize(
    ("cause", "before", "after", "ok"),
    [("residual reasoning", "0000", "0111", True), ("residual reasoning", "0000", "0001", False),
     ("no step was made", "0000", "1111", True), ("residual reasoning", "1111", "1111", None),
     ("action realization", "0000", "1111", None)],
)  # fmt: skip
def test_the_cause_that_disappears(cause: str, before: str, after: str, ok: bool | None) -> None:
    assert held(hl.Prediction(cause=cause), before, after, "1111") == ({} if ok is None else {"cause": ok})


def test_nothing_predicted_or_nothing_played_is_nothing_checked() -> None:
    assert check(hl.Prediction(("t1",), "contract/x"), pairs("0", "1", "1"), NEW) == {}
    assert check(hl.Prediction(fires=1.0, cause="x", gain=1.0), [], NEW) == {}


shares = st.one_of(st.none(), st.floats(0, 1))


@given(shares, st.text(max_size=5), st.one_of(st.none(), st.floats(-1, 1)), st.lists(st.text(max_size=3), max_size=3))
def test_predictions_are_stored_as_they_are(fires: Any, cause: str, gain: Any, flips: list[str]) -> None:
    made = hl.Prediction(tuple(flips), "x", fires, cause, gain)
    assert hl.Prediction.from_json(made.to_json()) == made


RIGHT = {"contract/x.yaml": "kind: prompt\nparams:\n  text: Walk right.\n"}


class Says:
    """Proposes one thing with a prediction."""

    def __init__(self, prediction: Any):
        self.prediction = prediction

    def propose(self, failures: Any, harness: Any, history: Any = ()) -> Any:
        return [hl.Proposal(RIGHT, "contract", "prompt", "contract/x", "x", (), self.prediction, estimator="says")]


def obedient(messages: Any) -> str:
    return "Action: right" if "Walk right" in str(messages) else "Action: left"


def trainer(lab: hl.Lab, prediction: Any) -> hl.Trainer:
    llm = hl.LLM.scripted(obedient, name="obedient")
    return hl.Trainer(lab=lab, llm=llm, estimator=Says(prediction), settings={"progress": False})


def test_a_verdict_says_what_held_and_the_lab_counts_it(open_lab: Callable[..., hl.Lab]) -> None:
    lab = open_lab()
    made = trainer(lab, hl.Prediction(fires=1.0, cause="trajectory degeneration", gain=0.1))
    loss = made.evaluate(made.propose()[0])
    said = loss.verdict.predictions
    assert said["fires"] == {"predicted": 1.0, "seen": 1.0, "held": True}
    assert said["gain"] == {"predicted": 0.1, "seen": 1.0, "held": False}
    assert said["cause"]["seen"].endswith("-> 0") and said["cause"]["held"] is True
    loss.backward()
    made.optimizer.step()
    again = read_verdict(lab.repo.candidates().rows[0].verdict)
    assert isinstance(again, Verdict) and again.predictions == said
    rows = {(row["estimator"], row["kind"]): row for row in lab.predictions()}
    assert rows["says", "all"]["hit rate"] == rows["says", "prompt"]["hit rate"] == round(2 / 3, 3)
    assert (rows["says", "all"]["verdicts"], rows["says", "all"]["conditions"], rows["says", "all"]["gain"]) == (
        1,
        3,
        0,
    )
    assert "<td>gain</td>" in loss._repr_html_().replace(" style=''", "") or "gain" in loss._repr_html_()
    past = past_verdicts(lab.repo)[0]
    assert past["predictions"] == {"fires": True, "cause": True, "gain": False} and past["estimator"] == "says"
    assert (
        hit_rate([past] * 3, "prompt") == 7 / 11 and hit_rate([past] * 3, "snap") == hit_rate([past], "prompt") == 0.5
    )


@pytest.mark.parametrize(
    "wrong", [hl.Prediction(fires=1.5), hl.Prediction(fires=True), hl.Prediction(gain=float("nan")),
              hl.Prediction(gain="big"), hl.Prediction(cause=7)]  # type: ignore[arg-type]
)  # fmt: skip
def test_a_prediction_of_the_wrong_form_is_refused(open_lab: Callable[..., hl.Lab], wrong: Any) -> None:
    from harnesslab.errors import EstimatorFault

    made = trainer(open_lab(), wrong)
    with pytest.raises(EstimatorFault, match="prediction"):
        made.propose()


def test_the_miner_predicts_conditions_and_learns_from_what_did_not_hold(open_lab: Callable[..., hl.Lab]) -> None:
    lab = open_lab()
    llm = hl.LLM.scripted(lambda messages: "Action: sideways", name="sideways")
    made = hl.Trainer(
        lab=lab, llm=llm, estimator=hl.MiningEstimator(rank="expected flips"), settings={"progress": False}
    )
    failures = made.diagnose()
    proposals = made.propose(failures)
    assert len(proposals) > 1
    for proposal in proposals:
        predicted = proposal.prediction
        assert predicted.fires is not None and 0 < predicted.fires <= 1 and predicted.gain is not None
        assert predicted.conditions()
    first = proposals[0]
    miss = {"kind": first.kind, "predictions": {"fires": False, "gain": False, "cause": False}}
    after = hl.MiningEstimator(rank="expected flips").propose(failures, lab.harness(), [miss] * 9)  # type: ignore[list-item]
    gains = {p.name: p.prediction.gain for p in after}
    assert gains[first.name] < first.prediction.gain and [p.name for p in after] != [p.name for p in proposals]
