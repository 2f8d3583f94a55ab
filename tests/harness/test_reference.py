"""The page of all kinds is the code's own."""

from __future__ import annotations

from pathlib import Path

from harnesslab.harness import known_kinds
from harnesslab.harness.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "interventions.md"

BUILT_IN = {
    "contract": {"prompt", "admissible", "state_card", "reminder", "annotate", "shorten", "tool"},
    "skill": {"procedure"},
    "action": {"rescue", "constrain", "snap", "rewrite", "quote", "rerank", "block", "ask_again"},
    "regulation": {"loop_breaker", "stagnation", "no_repeat", "retry_error", "budget", "finish_guard", "lint"},
}


def test_every_kind_is_in_its_layer() -> None:
    found = {layer: {n for n, cls in known_kinds().items() if cls.layers == (layer,)} for layer in BUILT_IN}
    assert found == BUILT_IN


def test_the_page_is_up_to_date() -> None:
    made = reference()
    hint = "run: python -m harnesslab.harness.reference > docs/interventions.md"
    assert PAGE.read_text(encoding="utf-8") == made, hint


def test_every_parameter_is_explained() -> None:
    for cls in known_kinds().values():
        assert cls.__doc__
        for name, info in cls.Params.model_fields.items():
            assert info.description, f"{cls.kind}.{name}"
