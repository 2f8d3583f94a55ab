"""Callbacks on the loop: when they are called, and what one that raises may not do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError, FailedCallback
from tests.trainer.test_trainer import RIGHT, WRONG, obedient

HOOKS = ["on_train_start", "on_epoch_start", "on_measured", "on_epoch_end", "on_train_end"]


class Log(hl.Callback):
    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def on_train_start(self, training: hl.Training) -> None:
        self.calls.append(("train_start", training.epochs))

    def on_epoch_start(self, epoch: int) -> None:
        self.calls.append(("epoch_start", epoch))

    def on_measured(self, run: hl.Run) -> None:
        self.calls.append(("measured", run.split))

    def on_epoch_end(self, loss: hl.Loss) -> None:
        self.calls.append(("epoch_end", (loss.epoch, loss.verdict.decision)))

    def on_train_end(self, training: hl.Training) -> None:
        self.calls.append(("train_end", training.parts["criterion"]))


def training(lab: Any, *callbacks: Any) -> hl.Trainer:
    estimator = hl.ManualEstimator(scan=False)
    for number, text in enumerate((WRONG, RIGHT)):
        estimator.add_text(f"contract/hint{number}.yaml", text)
    return hl.Trainer(
        lab, hl.LLM.scripted(obedient), estimator, settings={"progress": False}, callbacks=list(callbacks)
    )


def loop(trainer: hl.Trainer, epochs: int = 2) -> None:
    for loss in trainer.epochs(epochs):
        loss.backward()
        trainer.optimizer.step()


def test_they_are_called_in_order(open_lab: Callable[..., Any]) -> None:
    log = Log()
    loop(training(open_lab(), log))
    gate = [("measured", "gate")] * 2
    assert log.calls == [
        ("train_start", 2),
        ("epoch_start", 1), ("measured", "search"), *gate, ("epoch_end", (1, "reject")),
        ("epoch_start", 2), *gate, ("epoch_end", (2, "promote")),
        ("train_end", "StrictPareto"),
    ]  # fmt: skip


def test_the_end_comes_where_nothing_is_left_to_propose_and_after_resume(open_lab: Callable[..., Any]) -> None:
    log = Log()
    trainer = training(open_lab(), log)
    for _ in trainer.epochs(9):
        break
    assert [name for name, _ in log.calls][-2:] == ["epoch_end", "train_end"]
    log.calls.clear()
    for loss in trainer.resume():
        loss.backward()
        trainer.optimizer.step()
    assert log.calls[0] == ("train_start", 9) and log.calls[-1][0] == "train_end"
    assert "promote" in [given[1] for name, given in log.calls if name == "epoch_end"]


def test_an_error_in_the_loop_ends_the_training(open_lab: Callable[..., Any]) -> None:
    class Broken(hl.Criterion):
        def judge(self, pairs: Any) -> hl.Judgement:
            raise hl.errors.BudgetExceeded("enough")

    log = Log()
    trainer = training(open_lab(), log)
    trainer.criterion = Broken()
    with pytest.raises(hl.errors.BudgetExceeded):
        loop(trainer)
    assert log.calls[-1][0] == "train_end" and "epoch_end" not in [name for name, _ in log.calls]


@pytest.mark.parametrize("hook", HOOKS)
def test_one_that_raises_is_reported_once_and_the_others_go_on(open_lab: Callable[..., Any], hook: str) -> None:
    def fail(*given: Any) -> None:
        raise ZeroDivisionError("line one\nline two")

    lab, log = open_lab(), Log()
    trainer = training(lab, type("Clumsy", (hl.Callback,), {hook: fail})(), log)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        loop(trainer)
    told = [str(one.message) for one in seen if issubclass(one.category, FailedCallback)]
    assert len(told) == 1 and f"Clumsy.{hook} raised ZeroDivisionError" in told[0] and "\n" not in told[0]
    assert lab.repo.candidates(state="promoted").total == 1 and lab.repo.candidates(state="rejected").total == 1
    assert log.calls[-1][0] == "train_end" and len(log.calls) == 11


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([Log], r"the class Log: make one, with Log\(\)"),
        ([print], "not derived from hl.Callback"),
        (Log(), "must be a list of hl.Callback"),
        ("log", "must be a list of hl.Callback"),
    ],
)
def test_what_is_not_a_callback_is_refused(open_lab: Callable[..., Any], given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        hl.Trainer(open_lab(), hl.LLM.null(), callbacks=given)
