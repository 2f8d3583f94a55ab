"""Procedures: retrieval and demonstrations."""

from __future__ import annotations

from typing import Any

import pytest

HEAT = "kind: procedure\nparams: {text: Use the stove to heat things.}\n"
CLEAN = "kind: procedure\nparams: {text: Use the sink to clean things., keywords: wash rinse}\n"


@pytest.mark.parametrize(
    ("instruction", "fired"),
    [
        ("Heat the egg on the stove.", ("skill/heat",)),
        ("Please rinse a plate.", ("skill/clean",)),
        ("Open the door.", ()),
        ("the and of", ()),
    ],
)
def test_bm25_tells_the_best_one(pipeline: Any, context: Any, instruction: str, fired: tuple[str, ...]) -> None:
    pipe = pipeline({"skill/heat.yaml": HEAT, "skill/clean.yaml": CLEAN})
    assert pipe.begin(context(instruction=instruction)).fired == fired


def test_top_two(pipeline: Any, context: Any) -> None:
    more = {"skill/heat.yaml": HEAT[:-2] + ", top: 2, min_score: 0}\n", "skill/clean.yaml": CLEAN[:-2] + ", top: 2}\n"}
    assert len(pipeline(more).begin(context(instruction="Use the sink")).fired) == 2


def test_match_and_always(pipeline: Any, context: Any) -> None:
    match = pipeline("kind: procedure\nparams: {text: x, retrieve: match, match: '(?i)HEAT'}\n", "skill")
    assert match.begin(context()).draft.system == ("x",)
    assert match.begin(context(instruction="Cool it.")).fired == ()
    always = pipeline("kind: procedure\nparams: {text: x, retrieve: always, place: before}\n", "skill")
    assert always.begin(context(instruction="Cool it.")).draft.before == ("x",)


def test_demonstration_in_the_form_of_the_protocol(pipeline: Any, context: Any) -> None:
    text = """\
kind: procedure
params:
  retrieve: always
  text: Take it first.
  task: Heat a pan.
  demonstration:
    - {observation: A kitchen., action: take pan}
    - {action: heat pan}
"""
    pipe = pipeline(text, "skill")
    assert pipe.begin(context()).draft.system == (
        "Take it first.\n\nExample:\nHeat a pan.\nA kitchen.\nAction: take pan\nAction: heat pan",
    )
    assert '{"action": "take pan"}' in pipe.begin(context(protocol="json")).draft.system[0]
