"""``Completion.tool_calls`` has one shape, whichever backbone answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.llm.record import _completion
from harnesslab.llm.types import Completion, Request
from harnesslab.rollout.agent import Limits, complete

REQUEST = Request(({"role": "user", "content": "x"},))
NESTED = {"id": "a", "type": "function", "function": {"name": "go", "arguments": '{"to": "hall"}'}}
FLAT = {"id": "a", "name": "go", "arguments": {"to": "hall"}}


@pytest.mark.parametrize("given", [NESTED, FLAT])
def test_tool_calls_have_one_shape_whoever_answers(given: dict[str, Any]) -> None:
    class Native:
        constrains = False
        identity = {"kind": "own", "model": "own"}  # noqa: RUF012 - as a user would write it

        async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
            return Completion("", (given,))

    reply = asyncio.run(complete(Native(), REQUEST, 0, Limits()))
    assert reply.tool_calls == (FLAT,)


def test_the_control_calls_tools_in_the_same_shape() -> None:
    option = '{"name": "go", "arguments": {"to": "hall"}}'
    request = Request(REQUEST.messages, tools=({"function": {"name": "go"}},), options=(option,))
    reply = asyncio.run(complete(hl.LLM.random(0), request, 0, Limits()))
    assert [{**call, "id": "a"} for call in reply.tool_calls] == [FLAT]


@pytest.mark.parametrize("stored", [NESTED, FLAT])
def test_recordings_of_both_shapes_are_read(stored: dict[str, Any]) -> None:
    assert _completion({"t": "", "u": [0, 0], "s": 0.0, "c": [stored]}, {}).tool_calls == (FLAT,)
