"""JSON as the store writes it: compact, strict (no NaN), and never a reason to lose an episode."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.errors import StoreError
from harnesslab.redaction import scrub

MAX_TRACE_BYTES = 500_000_000
"""A stored trace that unpacks to more than this is refused as damaged."""


def to_json(value: object) -> str:
    """Compact ASCII JSON. NaN and infinities become null, foreign objects their text: a record is kept, not refused.

    Known secrets are taken out: all that the store keeps of a run goes through here.
    """
    try:
        return scrub(_strict.encode(value))
    except (ValueError, TypeError, RecursionError):
        return scrub(_strict.encode(_plain(value, 0)))


def from_json(text: str) -> Any:
    """What `to_json` wrote; `StoreError` for anything else, which a record of somebody else's may hold."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise StoreError("A stored record is damaged and cannot be read.", cause="corrupt") from None


def pack(steps: Sequence[Mapping[str, Any]]) -> bytes:
    """A trace as one compressed document."""
    return zlib.compress(to_json(steps).encode("ascii"), 1)


def unpack(data: bytes) -> list[dict[str, Any]]:
    """The trace in a document that `pack` made."""
    try:
        reader = zlib.decompressobj()
        text = reader.decompress(data, MAX_TRACE_BYTES)
        steps = json.loads(text) if reader.eof else None
    except (zlib.error, ValueError, RecursionError):
        raise StoreError("A stored trajectory is damaged and cannot be read; run the episode again.") from None
    if not isinstance(steps, list):
        raise StoreError("A stored trajectory is damaged and cannot be read; run the episode again.")
    return steps


_strict = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_MAX_DEPTH = 100


def _plain(value: object, depth: int) -> object:
    if depth > _MAX_DEPTH:
        return "..."
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, depth + 1) for item in value]
    item = getattr(value, "item", None)  # NumPy scalars
    if callable(item) and getattr(value, "ndim", None) == 0:
        return _plain(item(), depth + 1)
    return str(value)
