"""Plans for seeded Gymnasium environments: on the table of a deterministic one, else over copies."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Hashable, Sequence
from typing import Any

from harnesslab_envs.gymtext.games import Game
from harnesslab_envs.planning import Search


def plan_of(game: Game, env: Any) -> Sequence[int] | None:
    """Actions that solve ``env``, which was just reset; None where none were found."""
    moves = range(len(game.actions))
    table = getattr(env, "P", None)
    if isinstance(table, dict) and _deterministic(table):

        def by_table(state: int, move: int) -> tuple[int, bool, bool]:
            _, after, reward, over = table[state][move][0]
            return int(after), bool(over and reward >= game.goal), bool(over)

        return Search(moves, by_table, lambda state: state).plan(int(env.s))

    def by_copy(world: Any, move: int) -> tuple[Any, bool, bool]:
        after = copy.deepcopy(world, _shared(world))
        _, reward, over, cut, _ = after.step(move)
        return after, bool(over and reward >= game.goal), bool(over or cut)

    numbers = itertools.count()

    def key(world: Any) -> Hashable:
        # What happens next depends on the state and on the generator. Without a known state all copies differ.
        return (int(world.s), str(world.np_random.bit_generator.state)) if hasattr(world, "s") else next(numbers)

    return Search(moves, by_copy, key).plan(env)


def _deterministic(table: dict[int, dict[int, list[Any]]]) -> bool:
    return all(len(outcomes) == 1 for row in table.values() for outcomes in row.values())


def _shared(world: Any) -> dict[int, Any]:
    """What copies share: the toy-text tables, which nobody writes to and which are most of the size."""
    parts = [getattr(world, name, None) for name in ("P", "desc", "initial_state_distrib")]
    return {id(part): part for part in parts if part is not None}
