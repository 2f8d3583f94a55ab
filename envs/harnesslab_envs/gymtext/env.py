"""The environment: some Gymnasium environments by name, actions and states in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium

from harnesslab.errors import ConfigError, EnvironmentFault, OrderError
from harnesslab.rollout.env import JSON, SPLITS, Action, Policy, Split, Task
from harnesslab_envs.gymtext.games import KNOWN, Game, game_of
from harnesslab_envs.gymtext.oracle import plan_of
from harnesslab_envs.seeds import distinct_seeds

SHOWN = ("FrozenLake-v1", "Taxi-v4")
"""What is played where no id is given."""
COUNTS: dict[Split, int] = {"search": 12, "gate": 12, "sealed": 24}
"""Tasks of each game by split."""
MAX_STEPS = 30


class GymEnv:
    """One instance; ``options["game"]`` of :meth:`reset` is a Gymnasium id."""

    def __init__(self, games: Mapping[str, Game]):
        self._games = games
        self._game: Game | None = None
        self._env: Any = None
        self._solved = False
        self._mask: Any = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh game; see :class:`harnesslab.rollout.env.TextEnv`."""
        game = self._games.get(str((options or {}).get("game")))
        if game is None:
            raise EnvironmentFault("reset(options={'game': ...}) takes a Task's options.")
        self.close()
        self._game, self._env, self._solved = game, game.make(seed or 0), False
        observation, info = self._env.reset(seed=seed)
        self._mask = info.get("action_mask")
        return game.describe(self._env, observation), self._info(game)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Do one action, by its word."""
        if self._env is None or self._game is None:
            raise OrderError("No episode is running: call reset() first.")
        game = self._game
        if action not in game.actions:
            text = f"There is no action {str(action)[:80]!r}. The actions are: {', '.join(game.actions)}."
            return text, 0.0, False, False, self._info(game, invalid=True)
        observation, reward, over, cut, info = self._env.step(game.actions.index(str(action)))
        self._mask = info.get("action_mask")
        self._solved = self._solved or bool(over and reward >= game.goal)
        text = game.describe(self._env, observation)
        return text, float(reward), bool(over), bool(cut), self._info(game)

    def close(self) -> None:
        """Drop the game. Safe to call twice."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def _info(self, game: Game, invalid: bool = False) -> dict[str, Any]:
        mask = self._mask if self._mask is not None else [1] * len(game.actions)
        possible = [word for word, there in zip(game.actions, mask, strict=True) if there]
        return {
            "public": {"instruction": game.instruction, "admissible": possible, "invalid": invalid},
            "private": {"solved": self._solved},
        }


class GymTasks:
    """The environment over some games. ``version`` holds that of Gymnasium, which deals the starts."""

    name = "gymtext"
    version = f"1+gymnasium{gymnasium.__version__}"

    def __init__(self, games: Sequence[Game], max_steps: int):
        self.games, self.max_steps = {game.id: game for game in games}, max_steps
        self._seeds: dict[str, dict[Split, list[int]]] | None = None

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, games in turn."""
        if self._seeds is None:
            self._seeds = {name: self._share(game) for name, game in self.games.items()}
        return [
            Task(f"{name}-{self._seeds[name][split][n]}", split, name, self._seeds[name][split][n], {"game": name})
            for n in range(COUNTS[split])
            for name in self.games
        ]

    def make(self) -> GymEnv:
        """A new instance."""
        return GymEnv(self.games)

    def oracle(self, task: Task) -> Policy:
        """A shortest way, found by search; it sees the future of the seed."""
        game = self.games[str(task.options["game"])]
        env = game.make(task.seed)
        env.reset(seed=task.seed)
        plan = plan_of(game, env)
        if plan is None:
            raise EnvironmentFault(f"no way to solve {game.id} was found for this seed")
        moves = iter(plan)
        return lambda _observation, _info: game.actions[next(moves)]

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"

    def _share(self, game: Game) -> dict[Split, list[int]]:
        env = GymEnv(self.games)
        shares = distinct_seeds(lambda seed: env.reset(seed=seed, options={"game": game.id})[0], COUNTS)
        env.close()
        if shares is not None:
            return shares
        # It starts in few ways. Seeds then differ by what chance does in the episode, if by anything.
        numbers = iter(range(sum(COUNTS.values())))
        return {split: [next(numbers) for _ in range(COUNTS[split])] for split in SPLITS}


def environment(
    id: str | None = None,
    arguments: Mapping[str, JSON] | None = None,
    max_steps: int = MAX_STEPS,
    goal: float | None = None,
) -> GymTasks:
    """``id``: a Gymnasium id with discrete actions; by default FrozenLake and Taxi. ``arguments`` go to ``gymnasium.make``.
    ``goal``: the least reward of the last step that counts as solved, by default more than nothing.
    """
    try:
        games = [game_of(name, arguments or {}) for name in ([id] if id is not None else SHOWN)]
    except ValueError as error:
        raise ConfigError(
            f"'{id}' cannot be played as text: {error}. With words of their own: {', '.join(KNOWN)}."
        ) from None
    if goal is not None:
        games = [replace(game, goal=goal) for game in games]
    return GymTasks(games, max_steps)
