"""A warning points at the reader's own line, not at one of ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import FailedCallback, SkippedProposal, TrainingStopped, UndecidedLoss
from tests.trainer.test_plugins import GOOD, Gives, made


class Raises:
    """An estimator that fails."""

    def propose(self, failures: Any, harness: Any, history: Any = ()) -> Any:
        raise RuntimeError("no luck")


class Clumsy(hl.Callback):
    """A callback that fails at the start."""

    def on_train_start(self, training: Any) -> None:
        raise RuntimeError("no luck")


def loop(trainer: hl.Trainer, epochs: int) -> None:
    for _loss in trainer.epochs(epochs):
        pass


def skipped_file(lab: Any) -> None:
    broken = replace(GOOD, name="contract/bad", changes={"contract/bad.yaml": "kind: nothing_of_ours\n"})
    loop(made(lab, estimator=Gives([broken, GOOD])), 1)


def failing_estimator(lab: Any) -> None:
    with pytest.raises(TrainingStopped):
        loop(made(lab, estimator=Raises()), 1)


def undecided(lab: Any) -> None:
    other = replace(GOOD, name="contract/other", changes={"contract/other.yaml": "kind: prompt\nparams: {text: Hm.}\n"})
    loop(made(lab, estimator=Gives([GOOD, other])), 2)


def failing_callback(lab: Any) -> None:
    loop(made(lab, estimator=Gives([GOOD]), callbacks=[Clumsy()]), 1)


@pytest.mark.parametrize(
    ("act", "category"),
    [
        (skipped_file, SkippedProposal),
        (failing_estimator, SkippedProposal),
        (undecided, UndecidedLoss),
        (failing_callback, FailedCallback),
    ],
    ids=lambda given: given.__name__,
)
def test_a_warning_points_at_the_readers_line(
    open_lab: Callable[..., Any], act: Callable[[Any], None], category: type[Warning]
) -> None:
    lab = open_lab()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        act(lab)
    files = [one.filename for one in seen if issubclass(one.category, category)]
    assert files and {Path(file).name for file in files} == {Path(__file__).name}
