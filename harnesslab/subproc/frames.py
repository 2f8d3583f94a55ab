"""Frames: one JSON value each, as UTF-8 with its length before it (four bytes, big end first).

Strict on purpose: NaN, values that JSON does not have and frames above the limit are errors on the side
that meets them. Used by both sides, so only the standard library is imported.
"""

from __future__ import annotations

import json
import struct
from typing import Any

HEAD = struct.Struct(">I")
FRAME_LIMIT = 16 << 20
"""Bytes of one frame; a task list of thousands fits, a runaway does not."""


class FrameError(ValueError):
    """Bytes that are no frame, or a value that cannot be one."""


def encode(value: Any, limit: int = FRAME_LIMIT) -> bytes:
    """The frame of a plain JSON value. Lone surrogates, which UTF-8 does not have, become ``?``.

    Raises FrameError where the value is no plain JSON, or too long.
    """
    try:
        body = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"it is not plain JSON: {error}") from None
    if len(body) > limit:
        raise FrameError(f"it takes {len(body)} bytes, more than {limit}")
    return HEAD.pack(len(body)) + body


def decode(body: bytes) -> Any:
    """The value of a frame's body. Raises FrameError."""
    try:
        value = json.loads(body, parse_constant=_no_constant)
        if b"\\ud" in body or b"\\uD" in body:
            # Our own side never writes escaped surrogates. Lone ones would break every UTF-8 writer later.
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"it is not plain JSON: {error}") from None
    return value


def length(head: bytes, limit: int = FRAME_LIMIT) -> int:
    """The length that a head announces. Raises FrameError where it is above the limit."""
    (size,) = HEAD.unpack(head)
    if size > limit:
        raise FrameError(f"it announces {size} bytes, more than {limit}")
    return int(size)


def _no_constant(name: str) -> Any:
    raise ValueError(f"it holds {name}, which JSON does not have")
