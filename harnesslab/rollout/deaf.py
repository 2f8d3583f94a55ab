"""The deaf control: the same model under the same harness, told another task's instruction.

What it still solves, model and harness solve without reading the task. It works in every action protocol, because only
what the environment says is changed: the instruction, and its text wherever an observation repeats it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harnesslab.errors import EnvironmentFault
from harnesslab.llm.types import MinimalBackbone
from harnesslab.llm.wrapper import Wrapper
from harnesslab.rollout.env import SPLITS, Action, Environment, Task, TextEnv, public, tasks_of

DRAWS = 12
"""Other tasks that are looked at, at most, for an instruction that differs."""


class Deaf(Wrapper):
    """``backbone`` as a deaf control; ``seed`` decides which other task's instruction each task gets.

    A measurement that is given one plays :class:`DeafEnvironment`; anywhere else it is the backbone itself.
    """

    def __init__(self, backbone: MinimalBackbone, seed: int = 0):
        super().__init__(backbone)
        self.seed = seed

    @property
    def identity(self) -> Mapping[str, Any]:
        """The backbone's, and that it is deaf: another measurement."""
        own = self._backbone.identity
        return {**own, "model": f"deaf {own['model']}", "deaf": self.seed}

    def __repr__(self) -> str:
        return f"Deaf({super().__repr__()}, seed={self.seed})"


def world_for(environment: Environment, backbone: MinimalBackbone) -> Environment:
    """The environment as the backbone is to play it: for a deaf control with the instructions of other tasks."""
    return DeafEnvironment(environment, backbone.seed) if isinstance(backbone, Deaf) else environment


@dataclass(frozen=True)
class DeafEnvironment:
    """An environment in which each task is told with the instruction of another one of its split; everything else is the environment's."""

    environment: Environment
    seed: int

    def make(self) -> TextEnv:
        """A new instance."""
        return _DeafEnv(self.environment, self.environment.make(), self.seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "environment":  # while it is being unpickled
            raise AttributeError(name)
        return getattr(self.environment, name)


class _DeafEnv:
    """One instance. The other instruction is read from a reset of the other task."""

    def __init__(self, environment: Environment, env: TextEnv, seed: int):
        self._environment, self._env, self._seed = environment, env, seed
        self._own = self._other = ""

    @property
    def threaded(self) -> bool:
        return bool(getattr(self._env, "threaded", False))

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        self._own = self._other = ""
        own = _instruction(*self._env.reset(seed=seed, options=options))
        other = next((told for told in self._others(seed, options) if told.strip() != own.strip()), None)
        if other is None:
            raise EnvironmentFault(
                "no other task of the split has another instruction, so there is no deaf control", cause="unplayable"
            )
        observation, info = self._env.reset(seed=seed, options=options)
        self._own, self._other = own, other
        return self._tell(observation), self._told(info)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._env.step(action)
        return self._tell(observation), reward, terminated, truncated, self._told(info)

    def close(self) -> None:
        close = getattr(self._env, "close", None)
        if callable(close):
            close()

    def _others(self, seed: int | None, options: Mapping[str, Any] | None) -> Any:
        """The instructions of other tasks of the split, in an order that the seed and the task decide."""
        tasks = next((found for found in map(self._tasks, SPLITS) if _place(found, seed, options) is not None), [])
        own = _place(tasks, seed, options)
        others = [task for place, task in enumerate(tasks) if place != own]
        others.sort(key=lambda task: hashlib.sha256(f"{self._seed}/{own}/{task.id}".encode()).digest())
        for task in others[:DRAWS]:
            yield _instruction(*self._env.reset(seed=task.seed, options=task.options))

    def _tasks(self, split: Any) -> list[Task]:
        return tasks_of(self._environment, split)

    def _tell(self, observation: Any) -> Any:
        if not isinstance(observation, str) or not self._own.strip():
            return observation
        return observation.replace(self._own, self._other)

    def _told(self, info: Any) -> Any:
        if not isinstance(info, Mapping) or "instruction" not in public(info):
            return info
        return {**info, "public": {**public(info), "instruction": self._other}}


def _instruction(observation: Any, info: Any) -> str:
    """What the agent is told the task is: the instruction, or the first observation where there is none."""
    told = public(info).get("instruction", "") if isinstance(info, Mapping) else ""
    return told if isinstance(told, str) and told else str(observation)


def _place(tasks: list[Task], seed: int | None, options: Mapping[str, Any] | None) -> int | None:
    wanted = (seed, dict(options or {}))
    return next((place for place, task in enumerate(tasks) if (task.seed, dict(task.options)) == wanted), None)
