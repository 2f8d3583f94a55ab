"""A corridor whose task's options name a fault, which happens at the first step (or where the name says)."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable, NothingPlayable
from harnesslab.rollout.env import Task


def write_raw(data: bytes) -> None:
    """Write on the frames' own socket, past the server."""
    line = socket.socket(fileno=os.dup(int(sys.argv[1])))
    line.sendall(data)
    line.close()


def frame(value: object) -> bytes:
    body = json.dumps(value).encode()
    return struct.pack(">I", len(body)) + body


def hang() -> None:
    threading.Event().wait()


FAULTS: dict[str, Any] = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "sys.exit": lambda: sys.exit(4),
    "hang": hang,
    "spin": lambda: any(iter(int, 1)),
    "garbage": lambda: write_raw(b"\xff\xff\xff\xff this is no frame"),
    "no json": lambda: write_raw(struct.pack(">I", 9) + b"{'a': 1}}"),
    "nested": lambda: write_raw(struct.pack(">I", 200_000) + b"[" * 200_000),
    "nan on the wire": lambda: write_raw(struct.pack(">I", 3) + b"NaN"),
    "other number": lambda: write_raw(frame({"id": 10_000, "value": ["", 0, False, False, {}]})),
    "no dict": lambda: write_raw(frame(["hello"])),
    "half a frame": lambda: (write_raw(struct.pack(">I", 100) + b"{"), os._exit(0)),
    "memory": lambda: bytearray(1 << 31),
    "raise": lambda: {}["no such key"],
    "fault": lambda: (_ for _ in ()).throw(EnvironmentFault("the corridor is closed today")),
}
LIES: dict[str, Any] = {
    "three values": lambda: ("Room", 0.0, False),
    "nan": lambda: ("Room", float("nan"), False, False, {"public": {}, "private": {"solved": False}}),
    "object": lambda: (object(), 0.0, False, False, {"public": {}, "private": {"solved": False}}),
    "huge": lambda: ("x" * (17 << 20), 0.0, False, False, {"public": {}, "private": {"solved": False}}),
    "no info": lambda: ("Room", 0.0, False, False, "info"),
    "big number": lambda: ("Room", 10**400, False, False, {"public": {}, "private": {"solved": False}}),
    "admissible": lambda: ("Room", 0.0, False, False, {"public": {"admissible": 5}, "private": {"solved": False}}),
    "tools": lambda: (
        "Room", 0.0, False, False, {"public": {"tools": [{"function": "x"}]}, "private": {"solved": False}},
    ),
}  # fmt: skip


class Corridor:
    """Three steps to the right."""

    def __init__(self) -> None:
        self.room, self.fault = 0, ""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict]:
        self.room, self.fault = 0, (options or {}).get("fault", "")
        if self.fault == "hang in reset":
            hang()
        return "Room 0.", self._info()

    def step(self, action: Any) -> tuple[Any, ...]:
        if action == "facts":
            return json.dumps(self._facts()), 0.0, False, False, self._info()
        if action == "child":
            # A program that the environment started and that outlives a step.
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            return str(child.pid), 0.0, False, False, self._info()
        if isinstance(action, str) and action.startswith("print "):
            print(f"start of {action[6:]}")
            os.write(1, b"x" * 300_000)
            print(action[6:], file=sys.stderr)
        if action == "surrogate":
            return "lone \ud800", 0.0, False, False, self._info()
        if self.fault in FAULTS:
            FAULTS[self.fault]()
        if self.fault in LIES:
            lie: tuple[Any, ...] = LIES[self.fault]()
            return lie
        self.room += action == "right"
        return f"Room {self.room}.", float(self.room >= 3), self.room >= 3, False, self._info()

    def close(self) -> None:
        if self.fault == "hang in close":
            hang()
        if self.fault == "raise in close":
            raise RuntimeError("the door is stuck")

    def _facts(self) -> dict[str, Any]:
        import harnesslab

        return {
            "environ": dict(os.environ),
            "pid": os.getpid(),
            "cwd": str(Path.cwd()),
            "harnesslab": harnesslab.__file__,
            "path": sys.path,
            "modules": sorted(name for name in sys.modules if name.startswith("harnesslab")),
        }

    def _info(self) -> dict[str, Any]:
        return {
            "public": {"instruction": "Reach room 3.", "admissible": ["right"], "invalid": False},
            "private": {"solved": self.room >= 3},
        }


class World:
    """Three tasks a split, more for each fault that is named."""

    name, max_steps = "faulty", 5

    def __init__(self, faults: list[str], broken: str, unplayable: dict[str, str]):
        self.faults, self.broken, self.unplayable = faults, broken, unplayable

    @property
    def version(self) -> str:
        if self.broken == "version":
            raise EnvironmentUnavailable("The map of the corridor is missing. Get it with: harnesslab data get maps")
        return "1"

    def tasks(self, split: str) -> list[Any]:
        if self.broken == "tasks":
            return [Task("t", "search", "plain", seed="zero")]  # type: ignore[arg-type]
        faults = ["", *self.faults, "", ""]
        return [
            Task(f"{split}-{n}", split, fault or "plain", seed=n, options={"fault": fault})  # type: ignore[arg-type]
            for n, fault in enumerate(faults)
        ]

    def make(self) -> Corridor:
        return Corridor()

    def oracle(self, task: Task) -> Any:
        seen: list[str] = []

        def policy(observation: str, info: dict) -> str:
            seen.append(observation)
            if len(seen) > 3:
                raise RuntimeError("there are three steps only")
            return "right"

        return policy

    def null(self, task: Task) -> Any:
        return lambda observation, info: f"nothing in {task.id}"

    def starter(self) -> Path:
        return Path(__file__).parent / "starter"


def environment(faults: list[str] | None = None, broken: str = "", unplayable: dict[str, str] | None = None) -> World:
    if broken == "import":
        raise ImportError("no module named corridor_engine")
    if broken == "all":
        raise NothingPlayable("no room has a floor", {"north": "no floor", "south": "no floor"})
    return World(faults or [], broken, unplayable or {})
