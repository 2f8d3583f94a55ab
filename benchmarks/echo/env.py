"""An environment that does nothing and returns an observation and tools of a given size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesslab.rollout.env import Action, Policy, Split, Task


class Echo:
    """One instance; every step returns the same text."""

    def __init__(self, kilobytes: float):
        half = int(kilobytes * 512)
        self._text = "x" * half
        self._tools = [{"type": "function", "function": {"name": "echo", "description": "y" * half}}]

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
        """Start."""
        return self._text, self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        """Do nothing."""
        return self._text, 0.0, False, False, self._info()

    def close(self) -> None:
        """Nothing is held."""

    def _info(self) -> dict[str, Any]:
        return {"public": {"instruction": "Echo.", "tools": self._tools}, "private": {"solved": False}}


class World:
    """One task a split."""

    name, version, max_steps = "echo", "1", 5

    def __init__(self, kilobytes: float):
        self._kilobytes = kilobytes

    def tasks(self, split: Split) -> Sequence[Task]:
        """One task."""
        return [Task(f"{split}-0", split, "echo", seed=len(split))]

    def make(self) -> Echo:
        """A new instance."""
        return Echo(self._kilobytes)

    def oracle(self, task: Task) -> Policy:
        """There is nothing to solve."""
        return lambda _observation, _info: "echo"

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"


def environment(kilobytes: float = 0.2) -> World:
    """``kilobytes``: what each step returns, half as text and half as tools."""
    return World(kilobytes)
