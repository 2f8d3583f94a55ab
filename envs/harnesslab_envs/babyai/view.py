"""What the agent sees, in words: the 7 x 7 cells before it, as MiniGrid shows them, and what it carries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minigrid.core.constants import IDX_TO_COLOR, IDX_TO_OBJECT, STATE_TO_IDX

FACING = ("east", "south", "west", "north")
_STATES = {number: name for name, number in STATE_TO_IDX.items()}
_UNLISTED = frozenset({"unseen", "empty", "wall", "floor", "agent"})


def describe(level: Any) -> str:
    """The view of a MiniGridEnv. Things are told nearest first, walls only straight ahead and to the sides."""
    cells = level.gen_obs()["image"]
    things = [f"- {name}, {where(forward, right)}" for name, forward, right in _things(cells)]
    walls = [f"- a wall, {where(forward, right)}" for forward, right in _walls(cells)]
    carried = _name(level.carrying.type, level.carrying.color) if level.carrying is not None else "nothing"
    lines = [f"You face {FACING[level.agent_dir]} and carry {carried}. You see:", *things, *walls]
    return "\n".join(lines if len(lines) > 1 else [lines[0], "- nothing"])


def where(forward: int, right: int) -> str:
    """A place relative to the agent, in words."""
    parts = [f"{forward} forward"] if forward else []
    if right:
        parts.append(f"{abs(right)} {'right' if right > 0 else 'left'}")
    return " and ".join(parts)


def _name(kind: str, colour: str, state: str = "") -> str:
    if kind == "lava":
        return "lava"
    words = " ".join(filter(None, (state, colour, kind)))
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _cells(cells: Any) -> Iterator[tuple[int, int, str, str, str]]:
    """(forward, right, kind, colour, state) of each cell but the agent's own."""
    size = len(cells)
    for i in range(size):
        for j in range(size):
            kind, colour, state = (int(number) for number in cells[i][j])
            forward, right = size - 1 - j, i - size // 2
            if forward or right:
                name = IDX_TO_OBJECT[kind]
                yield forward, right, name, IDX_TO_COLOR[colour], _STATES[state] if name == "door" else ""


def _things(cells: Any) -> list[tuple[str, int, int]]:
    listed = [
        (forward + abs(right), forward, right, _name(kind, colour, state))
        for forward, right, kind, colour, state in _cells(cells)
        if kind not in _UNLISTED
    ]
    return [(name, forward, right) for _, forward, right, name in sorted(listed)]


def _walls(cells: Any) -> list[tuple[int, int]]:
    """The nearest wall straight ahead, to the left and to the right, where one is seen."""
    walls = [(forward, right) for forward, right, kind, _, _ in _cells(cells) if kind == "wall"]
    lines = (
        [place for place in walls if place[1] == 0],
        [place for place in walls if place[0] == 0 and place[1] < 0],
        [place for place in walls if place[0] == 0 and place[1] > 0],
    )
    return [min(line, key=lambda place: place[0] + abs(place[1])) for line in lines if line]
