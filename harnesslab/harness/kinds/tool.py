"""``contract/tool``: what the model is told of one tool."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from harnesslab.harness.context import Context
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.toolschema import name_of


class ToolParams(Params):
    """Parameters of ``tool``."""

    name: str = Field(min_length=1, description="the tool, by its exact name")
    description: str | None = Field(default=None, max_length=5000, description="in place of its description")
    note: str = Field(default="", max_length=5000, description="added to its description")
    parameters: dict[str, str] = Field(default_factory=dict, description="descriptions of parameters, by name")
    patch: dict[str, Any] = Field(
        default_factory=dict, description="merged into the schema of its parameters; null deletes a key"
    )
    hide: bool = Field(default=False, description="do not offer the tool at all")


@register
class Tool(Kind[ToolParams]):
    """The description and the schema of a tool, as the model sees them, in the request's `tools` or in the text.

    The environment still gets the call as it is written, so rename nothing. Kinds that check arguments check them by the patched
    schema. Where the tool is not offered, or lacks a parameter that is described, nothing is done.
    """

    kind = "tool"
    layers = ("contract",)
    Params = ToolParams
    example = """\
kind: tool
about: dates are sent in other forms and refused
params:
  name: book_flight
  note: Ask for confirmation before you call it.
  parameters: {date: 'YYYY-MM-DD, for example 2024-05-20'}
  patch: {properties: {cabin: {enum: [economy, business]}}}
"""

    def offer(self, context: Context, tools: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]] | None:
        """Patch the tool, or leave it out."""
        params = self.params
        if params.hide:
            others = [tool for tool in tools if name_of(tool) != params.name]
            return others if len(others) < len(tools) else None
        patched = [self._patched(tool) if name_of(tool) == params.name else tool for tool in tools]
        return patched if patched != list(tools) else None

    def _patched(self, tool: dict[str, Any]) -> dict[str, Any]:
        params, made = self.params, copy.deepcopy(tool)
        inner = made.get("function", made)
        about = str(inner.get("description") or "") if params.description is None else params.description
        inner["description"] = " ".join(text for text in (about, params.note) if text)
        schema = merged(inner.get("parameters") or {}, params.patch)
        described = schema.get("properties")
        for name, text in params.parameters.items():
            if isinstance(described, dict) and isinstance(described.get(name), dict):
                described[name]["description"] = text
        inner["parameters"] = schema
        return made


def merged(value: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396): objects are merged, null deletes, everything else replaces."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    made = dict(value) if isinstance(value, Mapping) else {}
    for key, item in patch.items():
        if item is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), item)
    return made
