"""The reminder kind."""

from __future__ import annotations

from typing import Any


def test_form_of_the_protocol_or_own_text(pipeline: Any, context: Any, tools: Any) -> None:
    pipe = pipeline("kind: reminder\n", "contract")
    assert pipe.begin(context()).messages[-1]["content"].endswith("Action: <your action>")
    assert "JSON object" in pipe.begin(context(protocol="json")).messages[-1]["content"]
    assert "Call exactly one" in pipe.begin(context(protocol="tools", tools=tools)).messages[-1]["content"]
    own = pipeline("kind: reminder\nparams: {text: One line.}\n", "contract")
    assert own.begin(context()).draft.after == ("One line.",)
