"""The environment: the official games, the published splits, 50 steps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harnesslab.errors import EnvironmentFault, OrderError
from harnesslab.rollout.env import JSON, SPLITS, Action, Policy, Split, Task
from harnesslab_envs.alfworld.games import Games, find_games, parse
from harnesslab_envs.mixing import mixed

if TYPE_CHECKING:
    from harnesslab_envs.alfworld.game import Game

MAX_STEPS = 50
"""As published."""
PUBLISHED: Mapping[str, Split] = {"train": "search", "valid_seen": "gate", "valid_unseen": "sealed"}
TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
_GOAL = "Your task is to:"
_BANNER = "-= Welcome to TextWorld, ALFRED! =-"


class HouseEnv:
    """One instance; ``options["game"]`` of :meth:`reset` names the game."""

    def __init__(self, games: Games):
        self._games = games
        self._game: Game | None = None
        self._instruction = ""
        self._state: Any = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Load a game, which takes seconds; ``seed`` changes nothing."""
        from harnesslab_envs.alfworld.game import Game

        name = (options or {}).get("game")
        if name not in self._games.names:
            raise EnvironmentFault(f"There is no game {name!r}: reset(options={{'game': ...}}) takes a Task's options.")
        self.close()
        self._game = Game(parse(self._games.read(name), name))
        self._state = self._game.reset()
        room, _, goal = str(self._state.feedback).replace(_BANNER, "").partition(_GOAL)
        self._instruction = goal.strip()
        return room.strip(), self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Do one command; see :class:`harnesslab.rollout.env.TextEnv`. One that is not admissible does nothing."""
        if self._game is None or self._state is None:
            raise OrderError("No episode is running: call reset() first.")
        if self._state.won:
            raise OrderError("The episode is over: call reset() first.")
        if not isinstance(action, str) or action not in self._state.admissible_commands:
            return "Nothing happens.", 0.0, False, False, self._info(invalid=True)
        self._state, _, _ = self._game.step(action)
        solved = bool(self._state.won)
        return str(self._state.feedback).strip(), float(solved), solved, False, self._info()

    def close(self) -> None:
        """Drop the game. Safe to call twice."""
        game, self._game, self._state = self._game, None, None
        if game is not None:
            game.close()

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        return {
            "public": {
                "instruction": self._instruction,
                "admissible": list(self._state.admissible_commands),
                "invalid": invalid,
            },
            "private": {"solved": bool(self._state.won)},
        }


class HouseTasks:
    """The environment over the games that were found."""

    name = "alfworld"
    max_steps = MAX_STEPS

    def __init__(self, path: str):
        self._path = path
        self._found: Games | None = None

    @property
    def version(self) -> str:
        """Holds the versions of both packages and a hash of the names of the games. Raises EnvironmentUnavailable."""
        digest = hashlib.sha256("\n".join(self._games().names).encode()).hexdigest()[:12]
        return f"1+alfworld{version_of('alfworld')}.textworld{version_of('textworld')}.{digest}"

    def tasks(self, split: Split) -> Sequence[Task]:
        """The games of a split, the six types mixed evenly. Raises EnvironmentUnavailable where there are no games."""
        if split not in SPLITS:
            raise EnvironmentFault(f"alfworld has no split '{split}'; it has {', '.join(SPLITS)}.")
        names = [name for name in self._games().names if PUBLISHED.get(name.split("/")[0]) == split and _type(name)]
        chosen = mixed(names, _type, lambda name: name)
        return [Task("/".join(name.split("/")[1:3]), split, _type(name), options={"game": name}) for name in chosen]

    def make(self) -> HouseEnv:
        """A new instance."""
        return HouseEnv(self._games())

    def oracle(self, task: Task) -> Policy:
        """The walkthrough that the game's file holds."""
        name = str(task.options["game"])
        walkthrough = parse(self._games().read(name), name).get("walkthrough")
        if not isinstance(walkthrough, list) or not walkthrough:
            raise EnvironmentFault(f"The game {name} has no walkthrough.")
        commands = iter(walkthrough)
        return lambda _observation, _info: str(next(commands, "look"))

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"

    def _games(self) -> Games:
        if self._found is None:
            self._found = find_games(self._path)
        return self._found


def environment(games: str = "") -> HouseTasks:
    """``games``: a folder, a zip or a tar with official games; by default what is in the data folder's ``alfworld``."""
    return HouseTasks(games)


def _type(name: str) -> str:
    kind = name.split("/")[1].split("-")[0]
    return kind if kind in TASK_TYPES else ""
