"""Short ways to make what the tests of the harness need."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harnesslab.harness import Context, Harness, Pipeline, Turn, load_harness

MANIFEST = b'name = "test"\n'

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "execute_sql",
            "description": "Run SQL.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "commit_final_answer",
            "parameters": {
                "type": "object",
                "properties": {"answers": {"type": "array", "items": {"type": "string"}}},
                "required": ["answers"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "move",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string", "enum": ["kitchen", "hall"]}, "fast": {"type": "boolean"}},
                "required": ["to", "fast"],
            },
        },
    },
)


@pytest.fixture
def tools() -> tuple[dict[str, Any], ...]:
    return TOOLS


@pytest.fixture
def harness() -> Callable[..., Harness]:
    """Load a harness from ``path=text`` pairs; a manifest is added where there is none."""

    def make(files: dict[str, str] | None = None, **options: Any) -> Harness:
        data = {"harness.toml": MANIFEST, **{path: text.encode() for path, text in (files or {}).items()}}
        return load_harness(data, **options)

    return make


@pytest.fixture
def pipeline(harness: Callable[..., Harness]) -> Callable[..., Pipeline]:
    """A pipeline over one intervention, or over several files."""

    def make(text: str | dict[str, str], layer: str = "action", **options: Any) -> Pipeline:
        files = text if isinstance(text, dict) else {f"{layer}/it.yaml": text}
        return Pipeline(harness(files, **options))

    return make


@pytest.fixture
def reply() -> Callable[..., SimpleNamespace]:
    """What a backbone answers."""

    def make(text: str = "", *calls: dict[str, Any], finish_reason: str = "stop") -> SimpleNamespace:
        return SimpleNamespace(text=text, tool_calls=calls, finish_reason=finish_reason)

    return make


@pytest.fixture
def history() -> Callable[..., tuple[Turn, ...]]:
    """Turns from (observation, action) pairs; each result is the next observation, ``last`` the final one."""

    def make(*pairs: tuple[str, Any], last: str = "", **fields: Any) -> tuple[Turn, ...]:
        results = [*(observation for observation, _ in pairs[1:]), last]
        return tuple(
            Turn(observation, f"Action: {action}", action, result, **fields)
            for (observation, action), result in zip(pairs, results, strict=True)
        )

    return make


@pytest.fixture
def context() -> Callable[..., Context]:
    """A context with an instruction and an observation, the rest as given."""

    def make(observation: str = "A kitchen.", instruction: str = "Heat the egg.", **fields: Any) -> Context:
        if "history" in fields:
            fields.setdefault("step", len(fields["history"]))
        return Context(instruction, observation, **fields)

    return make
