"""The constrain kind."""

from __future__ import annotations

from typing import Any


def test_choices_are_what_is_admissible(pipeline: Any, context: Any, tools: Any) -> None:
    pipe = pipeline("kind: constrain\nparams: {exclude: ^look$}\n")
    assert pipe.begin(context(admissible=("look", "go")), True).draft.choices == ("go",)
    assert pipe.begin(context(admissible=("look",)), True).draft.choices == ("look",)
    for silent in (context(), context(admissible=()), context(admissible=("go",), tools=tools)):
        assert pipe.begin(silent, True).fired == ()
    assert pipe.begin(context(admissible=("look", "go")), False).fired == ()


def test_too_many_choices(pipeline: Any, context: Any) -> None:
    pipe = pipeline("kind: constrain\nparams: {max: 2}\n")
    assert pipe.begin(context(admissible=("a", "b", "c")), True).fired == ()
