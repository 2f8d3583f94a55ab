"""What a panel is given by mistake is told in one sentence, not from its depths."""

from __future__ import annotations

from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError
from harnesslab.trainer.proposal import Proposals


@pytest.mark.parametrize(
    ("panel", "value", "words"),
    [
        ("failures", 3, r"trainer\.diagnose\(\), not 3"),
        ("failures", Proposals(), r"trainer\.diagnose\(\), not 0 proposals"),
        ("interventions", [], r"trainer\.propose\(\), not \[\]"),
        ("verdict", None, r"the loss of trainer\.evaluate\(\)"),
        ("curve", "labs/kitchen", r"a trainer or a lab, not 'labs/kitchen'"),
    ],
)
def test_a_wrong_argument_is_named(panel: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        getattr(hl.panels, panel)(value)
