"""A Trainer says at once which of its parts is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"lab": "labs/kitchen"}, "lab must be .*Lab.open.*'labs/kitchen'"),
        ({"llm": "gpt-5-mini"}, "llm must be .*'gpt-5-mini'"),
        ({"llm": hl.LLM}, r"llm is the class LLM: make one, with LLM\(\)"),
        ({"estimator": hl.MiningEstimator}, r"with MiningEstimator\(\)"),
        ({"criterion": hl.GreedyMonotonic()}, "criterion must be .*StrictPareto"),
        ({"optimizer": hl.StrictPareto()}, "optimizer must be .*GreedyMonotonic"),
    ],
)
def test_a_wrong_part_is_named(open_lab: Callable[..., Any], wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        hl.Trainer(**{"lab": open_lab(), "llm": hl.LLM.null(), **wrong})


def test_a_split_that_there_is_not_is_named(open_lab: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="unknown split 'train'; splits are search, gate, sealed"):
        hl.Trainer(open_lab(), hl.LLM.null()).measure("train")  # type: ignore[arg-type]
