"""Small worlds for tests: a corridor that is solved by walking right, and ways to break it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesslab.rollout.env import Action, Policy, Split, Task, TextEnv

STARTER = Path(__file__).parent / "starter"


class Corridor:
    """Walk ``right`` until the door of room ``length``; ``left`` goes back. Names of rooms are the observations."""

    def __init__(self, fault: str = ""):
        self.fault, self.room, self.length, self.closed = fault, 0, 3, False

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
        if self.fault == "reset":
            raise RuntimeError("the door fell on the agent")
        self.room, self.length = 0, int((options or {}).get("length", 3))
        return "Room 0.", self._info(False)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        if self.fault == "step":
            raise RuntimeError("the floor is gone")
        if self.fault == "exit":
            raise SystemExit("the world ends")
        if self.fault == "lie":
            return "Room ?", 0.0, False, False, {"public": {}, "private": {"solved": "yes"}}
        if action not in ("left", "right"):
            return f"There is no way {action}.", 0.0, False, False, self._info(True)
        self.room = max(0, self.room + (1 if action == "right" else -1))
        done = self.room >= self.length
        return f"Room {self.room}.", float(done), done, False, self._info(False)

    def close(self) -> None:
        self.closed = True

    def _info(self, invalid: bool) -> dict:
        return {
            "public": {"instruction": "Reach the last room.", "admissible": ["left", "right"], "invalid": invalid},
            "private": {"solved": self.room >= self.length, "progress": min(1.0, self.room / self.length)},
        }


class CorridorWorld:
    """Eight corridors a split, two families, of 1 to 4 rooms."""

    name, version, max_steps = "corridor", "1", 5

    def __init__(self, fault: str = "", faulty: Sequence[str] = ()):
        self.fault, self.faulty = fault, set(faulty)
        self.made: list[Corridor] = []

    def tasks(self, split: Split) -> list[Task]:
        return [
            Task(f"{split}-{n}", split, ("odd", "even")[n % 2], seed=n, options={"length": 1 + n % 4}) for n in range(8)
        ]

    def make(self) -> TextEnv:
        world = self

        class Watched(Corridor):
            def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
                self.fault = world.fault if not world.faulty or str(seed) in world.faulty else ""
                return super().reset(seed=seed, options=options)

        self.made.append(Watched())
        return self.made[-1]

    def oracle(self, task: Task) -> Policy:
        return lambda observation, info: "right"

    def starter(self) -> Path:
        return STARTER
