"""The normaliser, on replies as servers have really sent them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.errors import BackboneError
from harnesslab.llm.replies import assemble, strip_thinking, to_completion, tool_calls
from tests.llm.fake_openai import reply


def call(name: str | None, arguments: object, **more: object) -> dict:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "b"}], "b"),
        (["a", {"type": "output_text", "text": "b"}, None], "ab"),
        ("<think>hm</think>\n\ngo", "go"),
        ("<think>never closed", ""),
        ("opened by the template</think>go", "go"),
        ("<thinking>x</thinking>go <think>y</think>on", "go on"),
        ("a < b and think", "a < b and think"),
    ],
)
def test_content(content: object, text: str) -> None:
    assert to_completion(reply(content), {}, seconds=0, where="it").text == text


def test_reasoning_content_is_dropped() -> None:
    done = to_completion(reply("go", reasoning_content="hm", reasoning="hm"), {}, seconds=1, where="it")
    assert done.text == "go" and "hm" not in repr(done)


@pytest.mark.parametrize(
    ("raw", "calls"),
    [
        ([call("go", '{"to": "hall"}')], [("go", {"to": "hall"})]),
        ([call("go", {"to": "hall"})], [("go", {"to": "hall"})]),  # ollama: an object in place of text
        ([call("go", None)], [("go", {})]),
        ([call("go", "")], [("go", {})]),
        ([call("go", '"{\\"to\\": 1}"')], [("go", {"to": 1})]),  # encoded twice
        ([call("go", '{"to": "ha')], [("go", '{"to": "ha')]),  # cut off: stays text, is never executed as whole
        ([call("go", "[1]")], [("go", "[1]")]),
        ([call("go", '{"to": '), call(None, '"hall"}')], [("go", {"to": "hall"})]),  # split over two entries
        ([call("go", '{"to": 1}{"to": 2}')], [("go", {"to": 1}), ("go", {"to": 2})]),  # two calls with one index
        ([{"name": "go", "arguments": "{}"}], [("go", {})]),  # no "function" around it
        ([call(None, "{}"), "text", None], []),
        ("text", []),
        (None, []),
    ],
)
def test_tool_calls(raw: object, calls: list) -> None:
    assert [(one["name"], one["arguments"]) for one in tool_calls(raw)] == calls


def test_the_old_function_call_field_is_read() -> None:
    done = to_completion(reply(None, function_call={"name": "go", "arguments": "{}"}), {}, seconds=0, where="it")
    assert [one["name"] for one in done.tool_calls] == ["go"]


@pytest.mark.parametrize("raw", [None, "text", [], {}, {"choices": None}, {"choices": ["x"]}, {"error": "no"}])
def test_no_reply_is_an_error_that_names_the_endpoint(raw: object) -> None:
    with pytest.raises(BackboneError, match="the endpoint X"):
        to_completion(raw, {}, seconds=0, where="the endpoint X")


def test_streamed_calls_that_share_an_index_stay_apart() -> None:
    def chunk(index: int, identity: str | None, name: str | None, arguments: str) -> dict:
        piece = {"index": index, "id": identity, "function": {"name": name, "arguments": arguments}}
        return {"model": "m", "choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": None}]}

    whole = assemble(
        [
            chunk(0, "a", "go", '{"to"'),
            chunk(0, None, None, ": 1}"),
            chunk(0, "b", "take", '{"it": 2}'),
            {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
            {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 5}},
        ]
    )
    done = to_completion(whole, {}, seconds=0, where="it")
    assert [(one["name"], one["arguments"]) for one in done.tool_calls] == [("go", {"to": 1}), ("take", {"it": 2})]
    assert (done.finish_reason, done.prompt_tokens, done.completion_tokens) == ("tool_calls", 4, 5)


texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50)
@given(json_values)
def test_any_message_is_read_or_refused_cleanly(value: object) -> None:
    raw = {"choices": [{"message": {"content": value, "tool_calls": value, "function_call": value}}], "usage": value}
    done = to_completion(raw, {}, seconds=0, where="it")
    assert isinstance(done.text, str)


@settings(max_examples=50)
@given(st.dictionaries(texts, json_values, max_size=3))
def test_arguments_survive(arguments: dict) -> None:
    (one,) = tool_calls([call("f", json.dumps(arguments))])
    assert one["arguments"] == arguments


@given(st.text())
def test_thinking_is_gone_and_the_answer_stays(answer: str) -> None:
    plain = answer.replace("<", "").lstrip()
    assert strip_thinking(f"<think>some\nthoughts</think>\n{plain}") == plain
