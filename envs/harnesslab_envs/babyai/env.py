"""The environment: a dozen levels, words for actions, seeds shared out among the splits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# The banner that pygame prints on import is for people who play games.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

import gymnasium
import minigrid
from minigrid.core.actions import Actions
from minigrid.envs.babyai.core import roomgrid_level

from harnesslab.errors import ConfigError, EnvironmentFault, OrderError
from harnesslab.rollout.env import JSON, Action, Policy, Split, Task
from harnesslab_envs.babyai.oracle import oracle_of
from harnesslab_envs.babyai.view import describe
from harnesslab_envs.seeds import distinct_seeds

# It prints each layout that it throws away, also into a notebook.
roomgrid_level.print = lambda *_: None

LEVELS = (
    "BabyAI-GoToLocal-v0",
    "BabyAI-GoToDoor-v0",
    "BabyAI-ActionObjDoor-v0",
    "BabyAI-PickupLoc-v0",
    "BabyAI-PickupDist-v0",
    "BabyAI-PutNextLocalS5N3-v0",
    "BabyAI-OpenDoor-v0",
    "BabyAI-OpenTwoDoors-v0",
    "BabyAI-UnlockLocal-v0",
    "MiniGrid-Empty-Random-6x6-v0",
    "MiniGrid-DoorKey-5x5-v0",
    "MiniGrid-LavaCrossingS9N1-v0",
)
COUNTS: dict[Split, int] = {"search": 5, "gate": 5, "sealed": 10}
"""Tasks of each level by split."""
MAX_STEPS = 40
"""The bot needs at most 25 on these levels."""

WORDS = {
    "turn left": Actions.left,
    "turn right": Actions.right,
    "go forward": Actions.forward,
    "pick up": Actions.pickup,
    "drop": Actions.drop,
    "toggle": Actions.toggle,
}
_NAMES = {action: word for word, action in WORDS.items()}


class GridEnv:
    """One instance; ``options["level"]`` of :meth:`reset` is a Gymnasium id, ``seed`` its layout."""

    def __init__(self) -> None:
        self._level: Any = None
        self._solved = False

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh level; see :class:`harnesslab.rollout.env.TextEnv`."""
        name = (options or {}).get("level")
        if not isinstance(name, str):
            raise EnvironmentFault("reset(options={'level': ...}) takes a Task's options.")
        self.close()
        self._level, self._solved = _made(name, seed), False
        return describe(self._level), self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Do one of the six actions; one that has no effect is no error."""
        if self._level is None:
            raise OrderError("No episode is running: call reset() first.")
        move = WORDS.get(action) if isinstance(action, str) else None
        if move is None:
            text = f"There is no action {str(action)[:80]!r}. The actions are: {', '.join(WORDS)}."
            return text, 0.0, False, False, self._info(invalid=True)
        before = self._level.hash(), self._level.carrying
        _, reward, terminated, truncated, _ = self._level.step(move)
        self._solved = self._solved or bool(terminated and reward > 0)
        idle = "" if terminated or before != (self._level.hash(), self._level.carrying) else "Nothing happened.\n"
        return idle + describe(self._level), float(reward), bool(terminated), bool(truncated), self._info()

    def close(self) -> None:
        """Drop the level. Safe to call twice."""
        if self._level is not None:
            self._level.close()
            self._level = None

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        return {
            "public": {
                "instruction": str(self._level.mission),
                "admissible": possible(self._level),
                "invalid": invalid,
            },
            "private": {"solved": self._solved},
        }


class GridTasks:
    """The environment over some levels. ``version`` holds that of minigrid, which draws the layouts."""

    name = "babyai"
    version = f"1+minigrid{minigrid.__version__}"

    def __init__(self, levels: Sequence[str], max_steps: int):
        self.levels, self.max_steps = tuple(levels), max_steps
        self._seeds: dict[str, dict[Split, list[int]]] | None = None

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, levels in turn. No two tasks of a level start from the same layout."""
        if self._seeds is None:
            self._seeds = {level: _share(level) for level in self.levels}
        return [
            Task(
                f"{level}-{self._seeds[level][split][n]}", split, level, self._seeds[level][split][n], {"level": level}
            )
            for n in range(COUNTS[split])
            for level in self.levels
        ]

    def make(self) -> GridEnv:
        """A new instance."""
        return GridEnv()

    def oracle(self, task: Task) -> Policy:
        """BabyAI's own bot, or a search where the level is none of BabyAI's."""
        player = oracle_of(_made(str(task.options["level"]), task.seed))
        return lambda _observation, _info: _NAMES[player.next()]

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"


def environment(levels: Sequence[str] = LEVELS, max_steps: int = MAX_STEPS) -> GridTasks:
    """``levels``: ids of BabyAI or MiniGrid levels. ``max_steps``: the action budget; larger levels need a larger one."""
    unknown = [level for level in levels if level not in gymnasium.registry]
    if unknown or not levels:
        raise ConfigError(f"minigrid {minigrid.__version__} has no level {', '.join(unknown) or '(none was named)'}.")
    return GridTasks(levels, max_steps)


def possible(level: Any) -> list[str]:
    """The actions that would do something now."""
    front = level.grid.get(*level.front_pos)
    words = ["turn left", "turn right"]
    if front is None or front.can_overlap():
        words.append("go forward")
    if level.carrying is None and front is not None and front.can_pickup():
        words.append("pick up")
    if level.carrying is not None and front is None:
        words.append("drop")
    if front is not None and front.type in ("door", "box") and not _locked_out(level, front):
        words.append("toggle")
    return words


def _locked_out(level: Any, front: Any) -> bool:
    key = level.carrying
    return bool(
        front.type == "door"
        and front.is_locked
        and not (key is not None and key.type == "key" and key.color == front.color)
    )


def _made(name: str, seed: int | None) -> Any:
    level = gymnasium.make(name, disable_env_checker=True).unwrapped
    level.reset(seed=seed)
    return level


def _share(name: str) -> dict[Split, list[int]]:
    level = gymnasium.make(name, disable_env_checker=True).unwrapped

    def start(seed: int) -> tuple[str, str]:
        level.reset(seed=seed)
        return level.mission, level.hash()

    shares = distinct_seeds(start, COUNTS)
    if shares is None:
        raise ConfigError(f"The level {name} has fewer than {sum(COUNTS.values())} layouts; take a larger one.")
    return shares
