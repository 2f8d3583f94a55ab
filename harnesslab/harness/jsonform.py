"""The plain JSON forms of the dataclasses in :mod:`harnesslab.harness.context`, and back with every value checked.

Python interventions speak these forms, so that the same file can run in this process or in a confined one.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harnesslab.harness.context import MAX_TEXT, Answer, Context, Decision, Draft, Proposal, Turn
from harnesslab.harness.toolschema import checked

T = TypeVar("T", Context, Draft, Proposal, Decision, Turn, Answer)

_FORMS: tuple[Any, ...] = (Turn, Context, Draft, Proposal, Decision, Answer)
for _form in _FORMS:
    _form.__pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {form: TypeAdapter(form) for form in _FORMS}


def to_json(value: Any) -> Any:
    """A deep copy of a dataclass of the context module as dicts, lists and scalars."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(cls: type[T], data: Any) -> T:
    """The dataclass ``cls`` from its JSON form; keys that are left out have their defaults.

    Raises ValueError that names the key for an unknown key, a value of the wrong type, or what is no JSON.
    """
    try:
        made = _ADAPTERS[cls].validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as error:
        problem: Any = error.errors(include_url=False)[0]
        where = ".".join(map(str, (cls.__name__, *problem["loc"])))
        raise ValueError(f"{where}: {problem['msg']}") from error
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{cls.__name__}: not plain JSON: {error}") from error
    for owner in made.history if isinstance(made, Context) else (made,):
        _complete(getattr(owner, "action", None), type(owner).__name__)
    for action in made.actions if isinstance(made, Answer) else ():
        _complete(action, "Answer")
    return made


def _complete(action: Any, where: str) -> None:
    """Check the parts of a tool call, and give one without arguments an empty mapping."""
    if not isinstance(action, dict):
        return
    action.setdefault("arguments", {})
    if not isinstance(action.get("name"), str) or not isinstance(action["arguments"], dict):
        raise ValueError(
            f"{where}.action: a tool call has a name and arguments, {{'name': 'search', 'arguments': {{}}}}"
        )
    if unknown := sorted(set(action) - {"name", "arguments"}):
        raise ValueError(f"{where}.action: unknown key {unknown[0]!r}; a tool call has name and arguments")


def text_from_json(data: Any) -> str:
    """Checked result of an ``observe`` hook. Raises ValueError unless it is a text that is not too long."""
    if isinstance(data, str) and len(data) <= MAX_TEXT:
        return data.encode("utf-8", "replace").decode()
    raise ValueError(f"observe must return the observation, a text of at most {MAX_TEXT} characters, or None")


def tools_from_json(data: Any) -> tuple[dict[str, Any], ...]:
    """Checked result of an ``offer`` hook. Raises ValueError unless it is a list of function schemas that is not too long."""
    tools = checked(data)
    if len(json.dumps(tools, allow_nan=False)) > MAX_TEXT:
        raise ValueError(f"offer must return tools of at most {MAX_TEXT} characters as JSON")
    return tools


def scores_from_json(data: Any, count: int) -> list[float]:
    """Checked result of a ``rank`` hook. Raises ValueError unless it is ``count`` finite numbers."""
    if isinstance(data, (list, tuple)) and len(data) == count:
        scores = [float(x) for x in data if isinstance(x, (int, float))]
        if len(scores) == count and all(map(math.isfinite, scores)):
            return scores
    raise ValueError(f"rank must return a list of {count} finite numbers, one a proposal")
