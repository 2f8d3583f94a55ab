"""What a control backbone picks from where only tools are known: well-formed calls, in every protocol."""

from __future__ import annotations

import asyncio

import pytest

from harnesslab.harness.context import Context, Protocol
from harnesslab.harness.protocol import parse
from harnesslab.llm import LLM, Request
from harnesslab.rollout.control import tool_calls

TOOLS = (
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}},
    {
        "type": "function",
        "function": {
            "name": "move",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "speed": {"type": "integer"}, "by": {"enum": ["car", "bus"]}},
                "required": ["to", "speed", "by"],
            },
        },
    },
)


@pytest.mark.parametrize("protocol", ["text", "json", "tools"])
def test_every_pick_of_the_control_is_an_action(protocol: Protocol) -> None:
    """In native tool calls, too: a control that answered in text there solved nothing, whatever the harness did."""
    context = Context("Go.", "Paris, 12 km", tools=TOOLS, protocol=protocol)
    options = tool_calls(context)
    sent = TOOLS if protocol == "tools" else None
    picked = set()
    for seed in range(60):
        request = Request(({"role": "user", "content": "Paris"},), tools=sent, options=options, seed=seed)
        reply = asyncio.run(LLM.random(0).complete(request))
        proposal = parse(reply.text, reply.tool_calls, protocol, TOOLS)
        assert isinstance(proposal.action, dict), proposal.problem
        picked.add(proposal.action["name"])
        if proposal.action["name"] == "move":
            assert set(proposal.action["arguments"]) == {"to", "speed", "by"}
            assert proposal.action["arguments"]["to"] in ("Paris", "12", "km")
    assert picked == {"look", "move"}


def test_nothing_is_offered_without_tools() -> None:
    assert tool_calls(Context("Go.", "Paris")) == ()
