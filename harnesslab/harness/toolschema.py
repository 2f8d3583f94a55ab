"""What a tool's schema says. Schemas come from environments and are untrusted: every question here has an answer for any JSON.

:func:`checked` is asked once, when an episode starts; it normalises what can be used and names what cannot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.plainjson import MAX_DEPTH, too_deep

Tools = Sequence[Mapping[str, Any]]

_KINDS = frozenset({"array", "object", "integer", "number", "boolean", "null", "string"})
_REFERENCES = 16
_OF_VALUE = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def function(tool: Any) -> Mapping[str, Any]:
    """The function part of an OpenAI tool schema, or of a call in either of its two shapes."""
    inner = tool.get("function", tool) if isinstance(tool, Mapping) else {}
    return inner if isinstance(inner, Mapping) else {}


def name_of(tool: Any) -> str:
    """The tool's name; empty where it has none."""
    name = function(tool).get("name")
    return name if isinstance(name, str) else ""


def properties(tool: Any) -> Mapping[str, Mapping[str, Any]]:
    """The schema of each parameter, by name."""
    found = _parameters(tool).get("properties")
    if not isinstance(found, Mapping):
        return {}
    return {str(key): spec if isinstance(spec, Mapping) else {} for key, spec in found.items()}


def required(tool: Any) -> tuple[str, ...]:
    """The names of the parameters that a call must give."""
    found = _parameters(tool).get("required")
    if isinstance(found, str):
        return (found,)
    return tuple(name for name in found if isinstance(name, str)) if isinstance(found, (list, tuple)) else ()


def sole_parameter(tool: Any) -> str | None:
    """The name of a tool's only required parameter; None where it has none or several."""
    names = required(tool)
    return names[0] if len(names) == 1 else None


def types(tool: Any, parameter: str) -> tuple[str, ...]:
    """The JSON types that a parameter may have, through ``$ref``, ``anyOf`` and ``enum``; text where nothing is said."""
    return types_of(properties(tool).get(parameter, {}), _parameters(tool)) or ("string",)


def types_of(spec: Any, root: Mapping[str, Any], depth: int = 0) -> tuple[str, ...]:
    """The JSON types that one schema names; empty where it names none. ``root`` holds the definitions."""
    spec = resolved(spec, root)
    kind = spec.get("type")
    named = [kind] if isinstance(kind, str) else kind if isinstance(kind, (list, tuple)) else []
    found = [word for word in named if isinstance(word, str) and word in _KINDS]
    if not found and depth < _REFERENCES:
        for key in ("anyOf", "oneOf", "allOf"):
            options = spec.get(key)
            for option in options if isinstance(options, (list, tuple)) else ():
                found += types_of(option, root, depth + 1)
        values = spec.get("enum") if isinstance(spec.get("enum"), list) else [spec["const"]] if "const" in spec else []
        found += [_OF_VALUE.get(type(value), "null") for value in values or ()]
    return tuple(dict.fromkeys(found))


def resolved(spec: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """``spec``, or what its local ``$ref`` points at; empty for a reference that leads nowhere or in a circle."""
    for _ in range(_REFERENCES):
        if not isinstance(spec, Mapping):
            return {}
        pointer = spec.get("$ref")
        if not isinstance(pointer, str):
            return spec
        target: Any = root
        for part in pointer.removeprefix("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, Mapping) else None
        spec = target
    return {}


def schema_root(tool: Any) -> Mapping[str, Any]:
    """The schema of the arguments, whose ``$defs`` references point into."""
    return _parameters(tool)


def checked(tools: Any) -> tuple[dict[str, Any], ...]:
    """The tools as OpenAI function schemas that every reader can rely on; well-formed ones come back equal.

    Missing, null or boolean parts become empty ones. Raises ValueError with one sentence for a tool without a usable
    name, two of one name, parameters that are not an object schema, or what is not plain JSON.
    """
    if not isinstance(tools, (list, tuple)):
        raise ValueError(f"tools is a {type(tools).__name__}, not a list of function schemas")
    found = [_checked(tool, number) for number, tool in enumerate(tools, 1)]
    names = [name_of(tool) for tool in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two tools are named '{twice[0]}'; a call could mean either")
    return tuple(found)


def _parameters(tool: Any) -> Mapping[str, Any]:
    found = function(tool).get("parameters")
    return {**found, **resolved(found, found)} if isinstance(found, Mapping) else {}


def _checked(tool: Any, number: int) -> dict[str, Any]:
    if not isinstance(tool, Mapping) or not isinstance(tool.get("function", tool), Mapping):
        raise ValueError(f"tool {number} is not a function schema: an object with 'name' and 'parameters'")
    name = function(tool).get("name")
    if not isinstance(name, str) or not name or not name.isprintable() or name != name.strip():
        raise ValueError(f"tool {number} has no usable name: {str(name)[:60]!r}")
    if too_deep(tool):
        raise ValueError(f"the schema of the tool '{name[:60]}' is nested more than {MAX_DEPTH} levels deep")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(tool, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"the schema of the tool '{name[:60]}' is not plain JSON: {error}") from error
    inner = copy.get("function", copy)
    if "parameters" in inner:
        inner["parameters"] = _object_schema(inner["parameters"], name)
    if inner.get("description", "") is None:
        del inner["description"]
    return copy


def _object_schema(given: Any, name: str) -> dict[str, Any]:
    if given is None or isinstance(given, bool):
        given = {}
    if not isinstance(given, dict):
        raise ValueError(f"the parameters of the tool '{name}' are a {type(given).__name__}, not an object schema")
    kind = given.get("type")
    if kind not in (None, "object") and not (isinstance(kind, list) and "object" in kind):
        raise ValueError(f"the parameters of the tool '{name}' are of type {kind!r}, not object")
    schema = {**given, "type": kind or "object"}
    declared = schema.get("properties")
    if declared is None:
        schema["properties"] = {}
    elif not isinstance(declared, dict):
        raise ValueError(f"the properties of the tool '{name}' are a {type(declared).__name__}, not an object")
    schema["properties"] = {key: _property(spec, key, name) for key, spec in schema["properties"].items()}
    needed = schema.get("required", [])
    if needed is None or isinstance(needed, bool):
        needed = []
    needed = [needed] if isinstance(needed, str) else needed
    if not isinstance(needed, list) or not all(isinstance(key, str) for key in needed):
        raise ValueError(f"'required' of the tool '{name}' is not a list of parameter names")
    if needed or "required" in schema:
        schema["required"] = list(dict.fromkeys(needed))
    return schema


def _property(spec: Any, key: str, name: str) -> dict[str, Any]:
    if spec is None or spec is True:
        return {}
    if isinstance(spec, str) and spec in _KINDS:
        return {"type": spec}
    if not isinstance(spec, dict):
        raise ValueError(f"the parameter '{key}' of the tool '{name}' is not a schema but {str(spec)[:40]!r}")
    return spec
