"""Bring a call into the shape of its tool's schema: the tool by its name, and arguments whose way there is plain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harnesslab.harness.repair import mended as mended_json
from harnesslab.harness.toolschema import (
    Tools,
    name_of,
    properties,
    required,
    resolved,
    schema_root,
    sole_parameter,
    types,
    types_of,
)
from harnesslab.plainjson import loads, too_deep

Call = dict[str, Any]

_ORDER = ""


def find_tool(name: Any, tools: Tools) -> Mapping[str, Any] | None:
    """The tool of this name; ``functions.`` before it, ``:0`` behind it, case and punctuation do not count."""
    if not isinstance(name, str):
        return None
    name = re.sub(r":\d+$", "", name.strip())
    exact = [tool for tool in tools if name and name_of(tool) == name]
    if exact:
        return exact[0]
    for form in (name, re.sub(r"^.*[.:/]", "", name)):
        plain = _plain(form)
        found = [tool for tool in tools if plain and _plain(name_of(tool)) == plain]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def fit(arguments: Any, tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """``arguments`` in the shape of the tool's schema: types mended, the only argument renamed; None if hopeless."""
    sole, known = sole_parameter(tool), properties(tool)
    if isinstance(arguments, str) and arguments.strip().startswith(("{", "[")):
        value = json_value(arguments)
        text_fits = sole is not None and "string" in types(tool, sole)
        if value is None and (not text_fits or re.match(r"\s*\{\s*[\"'}]", arguments)):
            return None  # an object or a list, and too broken to be mended
        arguments = value if isinstance(value, (dict, list)) else arguments
    if isinstance(arguments, Mapping) and _ORDER in arguments:
        arguments = _by_position(arguments, tool)
    if arguments is None or arguments == "":
        return None if required(tool) else {}
    if not isinstance(arguments, Mapping):
        if sole is None:
            return None
        arguments = {sole: arguments}
    elif sole is not None and len(arguments) == 1 and known and not set(arguments) & set(known):
        arguments = {sole: next(iter(arguments.values()))}
    if (sole is not None and sole not in arguments) or too_deep(arguments):
        return None
    return {str(name): _typed(value, known.get(name, {}), schema_root(tool)) for name, value in arguments.items()}


def fitted(name: Any, arguments: Any, tools: Tools, cut: bool = False, mended: bool = False) -> Call | None:
    """The call in the shape of its tool. What was ``mended`` must have all that is required and nothing unknown."""
    tool = find_tool(name, tools)
    broken = isinstance(arguments, str) and strict(arguments) is None
    if tool is None or (cut and broken):
        return None
    found = fit(arguments, tool)
    if found is None:
        return None
    known = properties(tool)
    if (mended or broken) and (set(required(tool)) - set(found) or (known and set(found) - set(known))):
        return None
    return {"name": name_of(tool), "arguments": found}


def _by_position(arguments: Mapping[str, Any], tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Positional values by the schema's order; None where there are too many, or one is given twice."""
    names = [*required(tool), *(name for name in properties(tool) if name not in required(tool))]
    order = list(properties(tool)) or names
    given = arguments[_ORDER]
    if len(given) > len(order) or set(order[: len(given)]) & set(arguments):
        return None
    named_ones = {key: value for key, value in arguments.items() if key != _ORDER}
    return {**dict(zip(order, given, strict=False)), **named_ones}


def _typed(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> Any:
    """``value`` in the type that the schema asks for, where the way there is plain; else unchanged."""
    spec = resolved(schema, root)
    kinds = types_of(schema, root)
    if depth > 8 or not kinds:
        return value
    if "array" in kinds and not ("string" in kinds and isinstance(value, str)):
        if isinstance(value, str) and value.strip().startswith("["):
            value = json_value(value) or value
        items = spec.get("items", {})
        listed = value if isinstance(value, list) else [value]
        return [_typed(item, items if isinstance(items, Mapping) else {}, root, depth + 1) for item in listed]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and kinds == ("string",):
        return str(value)
    if isinstance(value, str) and "string" not in kinds:
        word = value.strip()
        try:
            return loads({"True": "true", "False": "false", "None": "null"}.get(word, word))
        except ValueError:
            return value
    return value


def json_value(text: str) -> Any:
    value = strict(text)
    return mended_json(text.strip()) if value is None else value


def strict(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return None


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())
