"""The lines of a reply that hold an action: ``Action:`` headers, what is below each, and fences."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_ACTION = re.compile(r"[ \t]*action[ \t]*\d{0,3}[ \t]*:(.*)", re.IGNORECASE | re.DOTALL)
INPUT = re.compile(r"[ \t]*action[ \t_]*\d{0,3}[ \t]*input[ \t]*\d{0,3}[ \t]*:(.*)", re.IGNORECASE | re.DOTALL)
FENCE = re.compile(r"[ \t]*(`{3,})[ \t]*[\w+#.-]*[ \t]*\r?")
OBSERVED = re.compile(
    r"[ \t>*_#]*(?:(?:tool |environment |game )?(?:observation|obs|response|result|output)s?|environment|user|human)"
    r"[ \t]*\d{0,3}[ \t*_]*:",
    re.IGNORECASE,
)
"""The start of a line on which a model goes on in the environment's or the user's name."""


def blocks(raw: str) -> list[tuple[str, list[str]]]:
    """Each ``Action:`` line as (rest of the line, its lines below), up to the first invented observation.

    Lines inside its fence are not looked at, and belong to it.
    """
    lines = raw.split("\n")
    found: list[tuple[str, list[str]]] = []
    index, unclosed = 0, math.inf
    while index < len(lines) and not (found and OBSERVED.match(lines[index])):
        match = _ACTION.fullmatch(lines[index])
        if match is None:
            index += 1
            continue
        start = index + 1
        end, unclosed = _after_fence(match[1], lines, start, unclosed)
        while end < len(lines) and not (_ACTION.fullmatch(lines[end]) or OBSERVED.match(lines[end])):
            if INPUT.fullmatch(lines[end]):
                end, unclosed = _after_fence(INPUT.fullmatch(lines[end])[1], lines, end + 1, unclosed)  # type: ignore[index]
            else:
                end += 1
        found.append((match[1], lines[start:end]))
        index = end
    return found


def _after_fence(rest: str, lines: Sequence[str], start: int, unclosed: float) -> tuple[int, float]:
    """The line after the fence that opens behind or below a header, else ``start``.

    ``unclosed``: the shortest run of backticks that is known to close nowhere further on; it keeps long replies linear.
    """
    opening = FENCE.fullmatch(rest[rest.index("```") :]) if "```" in rest else None
    first = start
    if opening is None and "```" not in rest:
        while first < len(lines) and not lines[first].strip():
            first += 1
        opening = FENCE.fullmatch(lines[first]) if first < len(lines) else None
        first += 1
    if opening is None or len(opening[1]) >= unclosed:
        return start, unclosed
    for end in range(first, len(lines)):
        closing = lines[end].strip()
        if len(closing) >= len(opening[1]) and not closing.strip("`"):
            return end + 1, unclosed
    return start, len(opening[1])


def fence_content(lines: Sequence[str]) -> tuple[str | None, int]:
    """What a fence that opens on the first non-blank line holds, and how many lines it takes.

    (None, 0) without a fence; (None, n > 0) for one that is never closed.
    """
    start = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    opening = FENCE.fullmatch(lines[start]) if start < len(lines) else None
    if opening is None:
        return None, 0
    for end in range(start + 1, len(lines)):
        closing = lines[end].strip()
        if len(closing) >= len(opening[1]) and not closing.strip("`"):
            return "\n".join(lines[start + 1 : end]), end + 1
    return None, start + 1
