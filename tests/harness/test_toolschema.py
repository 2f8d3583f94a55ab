"""Tool schemas as environments write them: normalised once, or refused in one sentence."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harnesslab.errors import EnvironmentFault
from harnesslab.harness import Context, Pipeline, load_harness, toolschema
from harnesslab.harness.protocol import parse
from harnesslab.harness.toolschema import checked, properties, required, sole_parameter, types
from harnesslab.rollout.guard import GuardedEnv
from tests.harness.conftest import TOOLS


def tool(parameters: Any, name: Any = "look up", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def test_well_formed_schemas_come_back_equal() -> None:
    assert checked(TOOLS) == TOOLS


@pytest.mark.parametrize(
    "parameters",
    [
        None, True, {}, {"type": "object"}, {"type": "object", "properties": None, "required": None},
        {"properties": {"q": None}}, {"properties": {"q": True}, "required": "q"}, {"properties": {"q": {"type": "string"}}, "required": ["q", "q"]},
        {"properties": {"q": {"$ref": "#/$defs/Q"}}, "$defs": {"Q": {"$ref": "#/$defs/Q"}}}, {"type": ["object", "null"], "properties": {"q": "string"}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("protocol", ["text", "json", "tools"])
def test_what_can_be_used_is_used(parameters: Any, protocol: Any) -> None:
    (found,) = known = checked([tool(parameters, description=None)])
    assert found["function"]["parameters"]["type"] in ("object", ["object", "null"])
    assert isinstance(found["function"]["parameters"]["properties"], dict)
    pipeline = Pipeline(load_harness({"harness.toml": b'name = "x"\n', "action/r.yaml": b"kind: rescue\n"}))
    assert pipeline.begin(Context("Look.", "A room.", tools=known, protocol=protocol)).messages
    text = parse('Action: look up\n{"q": "x"}', (), "text", known)
    assert text.action == {"name": "look up", "arguments": {"q": "x"}} or not properties(found)


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        ([tool(5)], "parameters of the tool 'look up' are a int"),
        ([tool([])], "are a list"),
        ([tool({"type": "array"})], "of type 'array'"),
        ([tool({"properties": 5})], "properties of the tool"),
        ([tool({"properties": {"q": 5}})], "parameter 'q'"),
        ([tool({"required": 5})], "'required' of the tool"),
        ([tool({"required": [5]})], "'required' of the tool"),
        ([tool({}), tool({})], "two tools are named 'look up'"),
        ([tool({}, "")], "no usable name"),
        ([tool({}, "a\nb")], "no usable name"),
        ([tool({}, " a")], "no usable name"),
        ([tool({"properties": {"q": {"default": {1, 2}}}})], "not plain JSON"),
        ([tool({"properties": {"q": {"default": float("nan")}}})], "not plain JSON"),
        ({"name": "x"}, "not a list"),
        ([None], "tool 1 is not a function schema"),
    ],
)
def test_what_cannot_is_the_environments_fault(tools: Any, told: str) -> None:
    class Env:
        def reset(self, *, seed: Any = None, options: Any = None) -> tuple[str, dict]:
            return "x", {"public": {"tools": tools}, "private": {"solved": False}}

    with pytest.raises(EnvironmentFault, match=told):
        asyncio.run(GuardedEnv(Env()).reset(seed=0, options={}))  # type: ignore[arg-type]


def test_nested_too_deeply() -> None:
    spec: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        spec = {"type": "array", "items": spec}
    with pytest.raises(ValueError, match="levels deep"):
        checked([tool({"properties": {"q": spec}})])


def test_types_through_references_and_unions() -> None:
    root = {
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "c": {"enum": [1, "x"]}, "d": {}},
        "$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
        "required": ["a"],
    }  # fmt: skip
    one = tool(root)
    assert [types(one, key) for key in "abcd"] == [("array",), ("integer", "null"), ("integer", "string"), ("string",)]
    assert sole_parameter(one) == "a" and required(one) == ("a",)


def test_a_reference_at_the_top_is_followed() -> None:
    place = {"type": "object", "properties": {"at": {"$ref": "#/$defs/Number"}}, "required": ["at"]}
    schema = {"$ref": "#/$defs/Place", "$defs": {"Place": place, "Number": {"type": "integer"}}}
    (tool,) = toolschema.checked([{"type": "function", "function": {"name": "go", "parameters": schema}}])
    assert toolschema.sole_parameter(tool) == "at" and toolschema.types(tool, "at") == ("integer",)
