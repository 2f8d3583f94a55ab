"""How a Gymnasium environment is told in words: by a describer of its own where it has one, else in general."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium

_COLOURED = re.compile(r"\x1b\[[0-9;]*m(.*?)\x1b\[0m", re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def plain(drawing: str) -> str:
    """A terminal drawing without its colours; what was coloured stands in brackets."""
    return _ESCAPE.sub("", _COLOURED.sub(r"[\1]", drawing)).strip("\n")


def draw(env: Any, observation: Any) -> str:
    """The general describer: the environment's own drawing for terminals, else the bare observation."""
    drawing = env.render() if env.render_mode == "ansi" else None
    return plain(drawing) if isinstance(drawing, str) else f"State {_bare(observation)}."


def describe_lake(env: Any, _observation: Any) -> str:
    """FrozenLake: where the agent is, and the map."""
    row, column = divmod(int(env.s), env.ncol)
    rows = ["".join(cell.decode() for cell in line) for line in env.desc]
    legend = "The map (S start, F ice, H hole, G goal; row 0 is the top):"
    return "\n".join([f"You are in row {row}, column {column}. {legend}", *rows])


def describe_taxi(env: Any, _observation: Any) -> str:
    """Taxi: where the taxi is, where the passenger is and wants to go, and the map."""
    row, column, passenger, destination = (int(number) for number in env.decode(env.s))
    names = ("red", "green", "yellow", "blue")
    stands = [f"{name} ({place[0]}, {place[1]})" for name, place in zip(names, env.locs, strict=True)]
    rider = "is in the taxi" if passenger == len(names) else f"waits at {stands[passenger]}"
    walls = "\n".join("".join(cell.decode() for cell in line) for line in env.desc)
    return (
        f"The taxi is at ({row}, {column}). The passenger {rider} and wants to go to {stands[destination]}.\n"
        f"Places are (row, column), row 0 is the top; | is a wall, : can be passed:\n{walls}"
    )


def random_lake(seed: int) -> dict[str, Any]:
    """FrozenLake's own generator of maps, so that seeds differ."""
    from gymnasium.envs.toy_text.frozen_lake import generate_random_map

    return {"desc": generate_random_map(size=4, seed=seed)}


@dataclass(frozen=True, slots=True)
class Game:
    """One environment. ``goal``: it is solved when it ends with at least this reward. ``per_seed``: more arguments for
    ``gymnasium.make``, by seed."""

    id: str
    actions: tuple[str, ...]
    instruction: str
    describe: Callable[[Any, Any], str] = draw
    goal: float = 0.001
    arguments: Mapping[str, Any] = field(default_factory=dict)
    per_seed: Callable[[int], dict[str, Any]] | None = None

    def make(self, seed: int) -> Any:
        """The bare environment, not reset yet."""
        arguments = {**self.arguments, **(self.per_seed(seed) if self.per_seed else {})}
        if "ansi" in _render_modes(self.id):
            arguments["render_mode"] = "ansi"
        return gymnasium.make(self.id, disable_env_checker=True, **arguments).unwrapped


KNOWN: dict[str, Game] = {
    game.id: game
    for game in (
        Game(
            "FrozenLake-v1",
            ("left", "down", "right", "up"),
            "Walk over the frozen lake to the goal G. A hole H ends the walk.",
            describe_lake,
            arguments={"is_slippery": False},
            per_seed=random_lake,
        ),
        Game(
            "Taxi-v4",
            ("south", "north", "east", "west", "pick up", "drop off"),
            "Drive the taxi to the passenger, pick the passenger up, drive to where the passenger wants to go, and drop "
            "the passenger off there.",
            describe_taxi,
        ),
        Game(
            "CliffWalking-v1",
            ("up", "right", "down", "left"),
            "Walk from the lower left corner to T, the lower right one. C is a cliff: who steps on it is back at the start.",
            goal=-1.0,
        ),
    )
}


def game_of(name: str, arguments: Mapping[str, Any]) -> Game:
    """The game of that Gymnasium id, with more ``arguments`` for ``gymnasium.make``. Raises ValueError, with the reason."""
    known = KNOWN.get(name)
    if known is None:
        count = _actions_of(name, arguments)
        known = Game(name, tuple(f"action {n}" for n in range(count)), f"Play {name} and reach its goal.")
    fixed = {**known.arguments, **arguments}
    per_seed = None if "desc" in arguments or "map_name" in arguments else known.per_seed
    return replace(known, arguments=fixed, per_seed=per_seed)


def _actions_of(name: str, arguments: Mapping[str, Any]) -> int:
    try:
        env = gymnasium.make(name, disable_env_checker=True, **arguments)
    except Exception as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    try:
        if not isinstance(env.action_space, gymnasium.spaces.Discrete) or env.action_space.start:
            raise ValueError(f"its actions are {env.action_space}, not a plain Discrete")
        return int(env.action_space.n)
    finally:
        env.close()


def _render_modes(name: str) -> tuple[str, ...]:
    point = gymnasium.spec(name).entry_point
    factory = gymnasium.envs.registration.load_env_creator(point) if isinstance(point, str) else point
    return tuple(getattr(factory, "metadata", {}).get("render_modes") or ())


def _bare(observation: Any) -> str:
    if isinstance(observation, tuple):
        return ", ".join(map(_bare, observation))
    return str(observation)
