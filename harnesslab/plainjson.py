"""JSON from outside, read strictly: a finite, shallow, unambiguous value, or ValueError. Nothing else is ever raised."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

MAX_DEPTH = 64
"""Levels of nesting that a value may have."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def loads(text: str) -> Any:
    """Strict JSON. Raises ValueError, also for NaN and infinity, for a key that is given two different values, and for
    more than :data:`MAX_DEPTH` levels. Lone surrogates become question marks: no file and no request could hold them.
    """
    try:
        return _sound(_DECODER.decode(text))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def leading_json(text: str, start: int = 0) -> tuple[Any, int]:
    """The JSON value that begins at ``start``, and where it ends. Raises ValueError as :func:`loads` does."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return _sound(value), end


def too_deep(value: Any, levels: int = MAX_DEPTH) -> bool:
    """Whether a JSON value has more than ``levels`` levels of lists and objects; never recurses."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            inner
            for item in layer
            if isinstance(item, (Mapping, list, tuple))
            for inner in (item.values() if isinstance(item, Mapping) else item)
        ]
        if not layer:
            return False
    return True


def leaves(value: Any, *, without: Collection[str] = ()) -> Iterator[Any]:
    """What a value holds besides mappings and lists, in order; the values of the keys in ``without`` are left out."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in without:
                yield from leaves(inner, without=without)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, without=without)
    else:
        yield value


def texts(value: Any, *, without: Collection[str] = ()) -> Iterator[str]:
    """The texts among the :func:`leaves`."""
    return (leaf for leaf in leaves(value, without=without) if isinstance(leaf, str))


def _sound(value: Any) -> Any:
    if too_deep(value):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return without_surrogates(value)


def without_surrogates(value: Any) -> Any:
    """A JSON value of bounded depth with a question mark in place of each lone surrogate."""
    if isinstance(value, str):
        return _SURROGATE.sub("?", value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return [without_surrogates(item) for item in value] if isinstance(value, list) else value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large for a number")
    return number


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"the key '{key[:60]}' is given twice")
        found[key] = value
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unambiguous)
