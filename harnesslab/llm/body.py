"""The exact request body: built in one place for every endpoint, so that a recording can be keyed by it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from harnesslab.llm.grammar import choice_grammar
from harnesslab.llm.quirks import Quirk
from harnesslab.llm.types import Request

Constrain: TypeAlias = Literal["grammar", "structured_outputs", "json_schema", "none"]
"""How an endpoint is told that a reply must be one of ``Request.choices``; ``none``: it cannot be told.

``grammar``: llama.cpp's GBNF field. ``structured_outputs``: vLLM's choice field. ``json_schema``: an enum in
OpenAI's ``response_format``; the reply is then ``{"choice": ...}`` and is unwrapped again.
"""

_CHOICE = "choice"
_MIN_JSON_ROOM = 32


@dataclass(frozen=True, slots=True)
class Sampling:
    """A backbone's own sampling; a request may override all but ``extra``. ``None`` is not sent.

    ``extra`` are further body fields, sent as they are (``{"top_p": 0.9}``).
    """

    temperature: float | None = 0.0
    max_tokens: int | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON, for a measurement's identity."""
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed}
        return {**{name: value for name, value in own.items() if value is not None}, **self.extra}


def build_body(
    model: str, request: Request, repeat: int, *, sampling: Sampling, quirk: Quirk, constrain: Constrain
) -> dict[str, Any]:
    """What is sent for ``request``: plain JSON, nothing of the connection and no key."""
    seed = sampling.seed if request.seed is None else request.seed
    limit = sampling.max_tokens if request.max_tokens is None else request.max_tokens
    body: dict[str, Any] = {
        "model": model,
        "messages": [dict(message) for message in request.messages],
        "temperature": sampling.temperature if request.temperature is None else request.temperature,
        "max_tokens": limit,
        "seed": None if seed is None else derive_seed(seed, repeat),
        **sampling.extra,
    }
    if request.tools:
        body["tools"] = [dict(tool) for tool in request.tools]
    if request.choices and constrain != "none":
        _constrain(body, request.choices, constrain)
    elif request.schema is not None:
        shape = {"name": "reply", "schema": dict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return quirk.apply({name: value for name, value in body.items() if value is not None})


def derive_seed(seed: int, repeat: int) -> int:
    """The seed of the ``repeat``-th repeat; hashed, so that (seed 0, repeat 1) is not (seed 1, repeat 0)."""
    if repeat == 0:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}/{repeat}".encode()).digest()[:4], "big") >> 1


def _constrain(body: dict[str, Any], choices: Sequence[str], how: Constrain) -> None:
    if how == "grammar":
        body["grammar"] = choice_grammar(choices)
    elif how == "structured_outputs":
        body["structured_outputs"] = {"choice": list(choices)}
    else:
        schema = {
            "type": "object",
            "properties": {_CHOICE: {"type": "string", "enum": list(choices)}},
            "required": [_CHOICE],
            "additionalProperties": False,
        }
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": _CHOICE, "strict": True, "schema": schema},
        }
    if body.get("max_tokens") is not None:
        # The constraint ends the reply by itself; a limit below the longest choice could only cut one off.
        longest = max(len(choice.encode("utf-8", "surrogatepass")) for choice in choices)
        body["max_tokens"] = max(body["max_tokens"], longest + _MIN_JSON_ROOM)


def unwrap_choice(text: str, body: Mapping[str, Any]) -> str:
    """The chosen text where ``body`` asked for it as JSON, else ``text``; no such JSON stays as it is."""
    wanted = body.get("response_format")
    if not isinstance(wanted, Mapping) or wanted.get("json_schema", {}).get("name") != _CHOICE:
        return text
    try:
        return str(json.loads(text)[_CHOICE])
    except (ValueError, KeyError, TypeError, RecursionError):
        return text


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of a plain JSON value; 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def canonical(value: Any) -> bytes:
    """Canonical JSON: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain).encode("ascii")


def _plain(value: Any) -> Any:
    """Mappings and sequences that are no dict or list (a frozen request may hold such)."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"a request body holds plain JSON values only, not {type(value).__name__}")
