"""Oracles for worlds that can be copied: breadth-first search over copies, the seed's future included.

A copy of a seeded Gymnasium environment carries its random generator, so that the search sees what will happen and
finds a shortest way for a stochastic world, too. An oracle may know that; an agent does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

World = TypeVar("World")
Move = TypeVar("Move")

LIMIT = 20_000
"""States that are looked at before the search gives up."""


class Search(Generic[World, Move]):
    """``step(world, move)`` gives (a new world, solved, over) and leaves ``world`` as it was; ``key`` names a state."""

    def __init__(
        self,
        moves: Sequence[Move],
        step: Callable[[World, Move], tuple[World, bool, bool]],
        key: Callable[[World], Hashable],
        limit: int = LIMIT,
    ):
        self._moves, self._step, self._key, self._limit = moves, step, key, limit

    def plan(self, start: World) -> list[Move] | None:
        """A shortest list of moves that solves the world, or None where none was found."""
        seen = {self._key(start)}
        queue: deque[tuple[World, tuple[Move, ...]]] = deque([(start, ())])
        while queue and len(seen) <= self._limit:
            world, done = queue.popleft()
            for move in self._moves:
                after, solved, over = self._step(world, move)
                if solved:
                    return [*done, move]
                key = self._key(after)
                if not over and key not in seen:
                    seen.add(key)
                    queue.append((after, (*done, move)))
        return None
