"""Oracles: the package's own bot for BabyAI's levels, a search for the plain MiniGrid ones.

Both act on a level of their own, made from the same seed, which goes through the same steps.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any

from minigrid.core.actions import Actions
from minigrid.utils.baby_ai_bot import BabyAIBot

from harnesslab.errors import EnvironmentFault
from harnesslab_envs.planning import Search

MOVES = (Actions.left, Actions.right, Actions.forward, Actions.pickup, Actions.drop, Actions.toggle)

_FIXED = frozenset({"wall", "floor", "goal", "lava"})


class BotOracle:
    """BabyAIBot, one action at a time."""

    def __init__(self, level: Any):
        self._level = level
        self._bot = BabyAIBot(level)
        self._last: Any = None

    def next(self) -> Actions:
        """The next action."""
        action = Actions(self._bot.replan(self._last))
        self._level.step(action)
        self._last = action
        return action


class SearchOracle:
    """A shortest way, found over copies of the level."""

    def __init__(self, level: Any):
        plan = Search(MOVES, _step, _key).plan(level)
        if plan is None:
            raise EnvironmentFault("no way to solve this level was found")
        self._plan = iter(plan)

    def next(self) -> Actions:
        """The next action."""
        return next(self._plan)


def oracle_of(level: Any) -> BotOracle | SearchOracle:
    """The oracle for a level that was just reset. Levels of BabyAI carry instructions that the bot can read."""
    return BotOracle(level) if hasattr(level, "instrs") else SearchOracle(level)


def _step(level: Any, move: Actions) -> tuple[Any, bool, bool]:
    after = _copy(level)
    _, reward, terminated, truncated, _ = after.step(move)
    return after, bool(terminated and reward > 0), bool(terminated or truncated)


def _copy(level: Any) -> Any:
    """A copy that shares what never changes: most cells are walls, and copying them takes most of the time."""
    shared = [cell for cell in level.grid.grid if cell is not None and cell.type in _FIXED]
    shared += [level.action_space, level.observation_space]
    return copy.deepcopy(level, {id(part): part for part in shared})


def _key(level: Any) -> Hashable:
    carried = level.carrying
    return level.hash(), (carried.type, carried.color) if carried is not None else None
