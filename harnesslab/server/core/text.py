"""Values on their way to the browser: bounded, plain, and in one form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harnesslab.server.answers import Fact

MAX_TEXT = 4_000
"""Characters of a text inside a step or a table; the full text has its own endpoint."""


def clip(text: object, limit: int = MAX_TEXT) -> str:
    """The text, cut to `limit` characters with a mark."""
    plain = text if isinstance(text, str) else "" if text is None else str(text)
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def stamp(seconds: float | None) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return None


def number(value: object) -> float | str | None:
    """A JSON number; what JSON has no number for becomes its name, what is no number becomes None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def facts(values: Mapping[str, Any], limit: int = 40) -> list[Fact]:
    """A mapping as name and text, for a list of facts; nested mappings are flattened once."""
    rows: list[Fact] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += [Fact(name=clip(f"{name}.{key}", 100), value=_plain(inner)) for key, inner in value.items()]
        else:
            rows.append(Fact(name=clip(name, 100), value=_plain(value)))
    return rows[:limit]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return clip(value, 500)
    if isinstance(value, float):
        return f"{value:.6g}"
    return clip(json.dumps(value, ensure_ascii=False, default=str), 500)
