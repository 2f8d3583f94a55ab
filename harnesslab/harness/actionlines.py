"""The lines of a reply that hold an action: ``Action:`` headers, what is below each, and fences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harnesslab.plainjson import leading_json

_ACTION = re.compile(r"[ \t]*action[ \t]*\d{0,3}[ \t]*:(.*)", re.IGNORECASE | re.DOTALL)
INPUT = re.compile(r"[ \t]*action[ \t_]*\d{0,3}[ \t]*input[ \t]*\d{0,3}[ \t]*:(.*)", re.IGNORECASE | re.DOTALL)
FENCE = re.compile(r"[ \t]*(`{3,})[ \t]*[\w+#.-]*[ \t]*\r?")
RESULT = re.compile(
    r"<\|?/?(?:tool_(?:response|result|output)s?|function_(?:results?|response)|observation|ipython)\|?>|\[TOOLRESULTS\]|"
    r"<[|｜]tool[_▁]outputs?[_▁](?:begin|end)[|｜]>|<\|im_start\|>(?:user|tool)|<\|start\|>functions|✿RESULT✿|"
    r"<\|start_header_id\|>(?:ipython|tool|user)"
)
"""The marks behind which a model goes on in the tool's or the user's name."""
OBSERVED = re.compile(
    r"[ \t>*_#]*(?:(?:tool |environment |game )?(?:observation|obs|response|result|output)s?|environment|user|human)"
    rf"[ \t]*\d{{0,3}}[ \t*_]*:|[ \t]*(?:{RESULT.pattern})",
    re.IGNORECASE,
)
"""The start of a line on which a model goes on in the environment's or the user's name."""
MANY = 256
"""``Action:`` lines of a reply that are looked at; a reply with as many is a loop, and nothing of it is executed."""


class Block(NamedTuple):
    """An ``Action:`` line: what follows it on the line, the lines below that belong to it, and its number in the reply."""

    rest: str
    below: list[str]
    line: int


def blocks(raw: str) -> list[Block]:
    """Each ``Action:`` line of a reply, up to the first invented observation. Lines inside its fence are not looked at."""
    lines = raw.split("\n")
    found: list[Block] = []
    index, unclosed = 0, math.inf
    while index < len(lines) and len(found) < MANY and not (found and OBSERVED.match(lines[index])):
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
        found.append(Block(match[1], lines[start:end], index))
        index = end
    return found


def without(raw: str, read: Iterable[Block]) -> str:
    """``raw`` with spaces in place of these blocks: each header, and its argument where that has an end of its own.

    Positions stay as they are. Unfenced text below a header remains: it may hold another call.
    """
    starts = [0]
    for line in raw.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    pieces, position = [], 0
    for block in read:
        begin, end = starts[block.line], _end(raw, block, starts[block.line + 1] - 1)
        pieces += [raw[position:begin], re.sub(r"[^\n]", " ", raw[begin:end])]
        position = end
    return "".join([*pieces, raw[position:]])


def _end(raw: str, block: Block, header_end: int) -> int:
    """Where a block's fence or JSON object ends, else its header."""
    begin = header_end - len(block.rest)
    marks = [raw.find(mark, begin, header_end) for mark in ("{", "```")]
    position = min((mark for mark in marks if mark >= 0), default=-1)
    offset = header_end + 1
    for line in block.below if position < 0 else ():
        label = INPUT.fullmatch(line)
        text = label[1] if label else line
        if text.strip():
            position = offset + len(line) - len(text.lstrip())
            break
        offset += len(line) + 1
    if position < 0:
        return header_end
    if raw.startswith("```", position):
        lines = raw[position : header_end + 1 + sum(len(line) + 1 for line in block.below)].split("\n")
        content, used = fence_content(lines)
        return header_end if content is None else position + sum(len(line) + 1 for line in lines[:used]) - 1
    try:
        return leading_json(raw, position)[1] if raw.startswith("{", position) else header_end
    except ValueError:
        return header_end


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
