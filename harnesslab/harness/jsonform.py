"""The plain JSON forms of the dataclasses in :mod:`harnesslab.harness.context`, and back with every value checked.

Python interventions speak these forms, so that the same file can run in this process or in a confined one.
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harnesslab.harness.context import Context, Decision, Draft, Proposal, Protocol, Turn

T = TypeVar("T", Context, Draft, Proposal, Decision, Turn)

MAX_TEXT = 200_000
"""Characters that one text from an intervention may have."""
MAX_SAMPLES = 32
"""Replies that a draft may ask for."""

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Texts = Annotated[tuple[Text, ...], Field(max_length=10_000)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Call(_Form):
    name: str
    arguments: dict[str, Any] = {}


_Action = Text | _Call


class _Turn(_Form):
    observation: Text
    raw: Text
    action: _Action | None
    result: Text
    invalid: bool = False
    fired: tuple[str, ...] = ()


class _Context(_Form):
    instruction: Text
    observation: Text
    history: tuple[_Turn, ...] = ()
    admissible: Texts | None = None
    tools: tuple[dict[str, Any], ...] | None = None
    step: int = 0
    budget: int = 50
    protocol: Protocol = "text"


class _Draft(_Form):
    system: Texts = ()
    before: Texts = ()
    after: Texts = ()
    history: int = Field(default=4, ge=0)
    choices: Texts | None = None
    samples: int = Field(default=1, ge=1, le=MAX_SAMPLES)
    temperature: float | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=1)


class _Proposal(_Form):
    raw: Text
    action: _Action | None = None
    problem: Text = ""
    withheld: bool = False
    tool_calls: tuple[dict[str, Any], ...] = ()
    cut: bool = False
    cause: Text = ""


class _Decision(_Form):
    note: Text = ""
    action: _Action | None = None
    withhold: bool = False
    stop: bool = False


_FORMS: dict[type, type[_Form]] = {
    Context: _Context,
    Turn: _Turn,
    Draft: _Draft,
    Proposal: _Proposal,
    Decision: _Decision,
}


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
        form = _FORMS[cls].model_validate_json(json.dumps(data, allow_nan=False))
    except ValidationError as error:
        problem: Any = error.errors(include_url=False)[0]
        where = ".".join(map(str, (cls.__name__, *problem["loc"])))
        raise ValueError(f"{where}: {problem['msg']}") from error
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{cls.__name__}: not plain JSON: {error}") from error
    return _build(cls, form)


def _build(cls: type[T], form: _Form) -> T:
    values = {name: _thaw(getattr(form, name)) for name in type(form).model_fields}
    return cls(**values)


def _thaw(value: Any) -> Any:
    if isinstance(value, _Turn):
        return _build(Turn, value)
    if isinstance(value, _Call):
        return value.model_dump()
    if isinstance(value, tuple):
        return tuple(_thaw(item) for item in value)
    return value


def scores_from_json(data: Any, count: int) -> list[float]:
    """Checked result of a ``rank`` hook. Raises ValueError unless it is ``count`` finite numbers."""
    if isinstance(data, (list, tuple)) and len(data) == count:
        scores = [float(x) for x in data if isinstance(x, (int, float))]
        if len(scores) == count and all(map(math.isfinite, scores)):
            return scores
    raise ValueError(f"rank must return a list of {count} finite numbers, one a proposal")
