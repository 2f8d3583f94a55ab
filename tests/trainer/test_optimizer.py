"""An optimizer is one method; promote, reject and shelve are in the base class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import OptimizerFault
from tests.trainer.test_trainer import RIGHT, WRONG, trainer


class Says(hl.Optimizer):
    def __init__(self, answer: Any):
        super().__init__()
        self.answer, self.asked = answer, 0

    def should_promote(self, loss: hl.Loss) -> bool:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: bool = self.answer
        return answer


class CannotTell(hl.Criterion):
    def judge(self, pairs: Any) -> hl.Judgement:
        return hl.Judgement(-1, "too few", undecided=True)


def judged(lab: Any, text: str, optimizer: hl.Optimizer, criterion: Any = None) -> tuple[hl.Trainer, hl.Loss]:
    made = trainer(lab, text)
    made = hl.Trainer(lab, made.llm, made.estimator, criterion, optimizer, settings={"progress": False})
    loss = made.evaluate(made.propose()[0])
    loss.backward()
    return made, loss


@pytest.mark.parametrize(
    ("text", "answer", "state"),
    [(RIGHT, True, "promoted"), (RIGHT, False, "rejected"), (WRONG, True, "promoted"), (WRONG, False, "rejected")],
)
def test_the_answer_decides_and_a_disagreement_is_on_record(
    open_lab: Callable[..., Any], text: str, answer: bool, state: str
) -> None:
    lab, optimizer = open_lab(), Says(answer)
    before = lab.repo.baseline()
    made, loss = judged(lab, text, optimizer)
    assert optimizer.step() is answer and made.harness.applied is answer and made.harness.grad is None
    assert (lab.repo.baseline() != before) is answer
    note = lab.repo.candidate(loss.candidate).verdict
    assert lab.repo.candidate(loss.candidate).state == state
    agreed = (text == RIGHT) is answer
    assert hl.Verdict.from_json(note).who == ("" if agreed else "Says")
    assert ("against StrictPareto" in note["why"]) is not agreed
    assert loss.verdict.decision == ("promote" if answer else "reject")
    table = lab.log() if answer else lab.rejected()
    assert ("StrictPareto" if agreed else "Says") in repr(table)


def test_what_cannot_be_told_is_shelved_unless_it_is_promoted(open_lab: Callable[..., Any]) -> None:
    for name, answer, state in (("a", False, "undecided"), ("b", True, "promoted")):
        lab, optimizer = open_lab(name), Says(answer)
        _, loss = judged(lab, RIGHT, optimizer, CannotTell())
        optimizer.step()
        assert lab.repo.candidate(loss.candidate).state == state


def test_a_persons_decision_is_carried_out_without_asking(open_lab: Callable[..., Any]) -> None:
    lab, optimizer = open_lab(), Says(False)
    made, loss = judged(lab, RIGHT, optimizer)
    made.harness.zero_grad()
    assert made.promote(loss, "I looked at it") is True
    assert optimizer.asked == 0 and lab.repo.candidate(loss.candidate).state == "promoted"


@pytest.mark.parametrize("answer", [None, 1, "yes", ZeroDivisionError("oops")])
def test_any_other_answer_changes_nothing(open_lab: Callable[..., Any], answer: Any) -> None:
    lab, optimizer = open_lab(), Says(answer)
    made, loss = judged(lab, RIGHT, optimizer)
    with pytest.raises(OptimizerFault, match=r"Says\.should_promote"):
        optimizer.step()
    assert made.harness.grad is not None and lab.repo.candidate(loss.candidate).state == "measured"
    optimizer.answer = True
    assert optimizer.step() is True
