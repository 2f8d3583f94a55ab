"""Frames: every plain JSON value survives; what is none is refused by the side that meets it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.rollout.env import Task
from harnesslab.rollout.process.wire import pack_task, unpack_task
from harnesslab.subproc.frames import HEAD, FrameError, decode, encode, length

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_a_value_survives(value: Any) -> None:
    frame = encode(value)
    head, body = frame[: HEAD.size], frame[HEAD.size :]
    assert length(head) == len(body)
    assert decode(body) == value


@given(st.binary(max_size=200))
def test_bytes_are_a_value_or_a_frame_error(body: bytes) -> None:
    try:
        value = decode(body)
    except FrameError:
        return
    encode(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}, b"bytes", {"a": {(1, 2): 3}}])
def test_what_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(FrameError, match="not plain JSON"):
        encode(value)


@pytest.mark.parametrize("body", [b"NaN", b"[1, -Infinity]", b"{'a': 1}", b"\xff", b"", b"[" * 100_000, b"1" * 5_000])
def test_bodies_that_are_no_json(body: bytes) -> None:
    with pytest.raises(FrameError, match="not plain JSON"):
        decode(body)


def test_lone_surrogates_do_not_pass() -> None:
    assert decode(encode("a\ud800b")[HEAD.size :]) == "a?b"
    assert decode(b'["\\ud800 \\uDfff", "\\ud83d\\ude00"]') == ["? ?", "\N{GRINNING FACE}"]


def test_limits() -> None:
    assert len(encode("x" * 98, limit=100)) == 104
    with pytest.raises(FrameError, match="takes 101 bytes, more than 100"):
        encode("x" * 99, limit=100)
    with pytest.raises(FrameError, match="announces 4294967295 bytes"):
        length(b"\xff\xff\xff\xff")


def test_a_task_survives() -> None:
    task = Task("t-1", "gate", "plain", 7, {"a": [1, None]})
    assert unpack_task(pack_task(task)) == task


@pytest.mark.parametrize(
    "change", [{"seed": "7"}, {"seed": True}, {"options": []}, {"id": 1}, {"split": None}, {"more": 1}]
)
def test_what_is_no_task(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a task"):
        unpack_task({**pack_task(Task("t", "gate", "plain")), **change})
    with pytest.raises(ValueError, match="a task must have"):
        unpack_task([])
