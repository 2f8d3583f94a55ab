"""An environment whose instances and oracles live in child processes, behind the usual protocol."""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, OrderError, TasksLeftOut, readers_line
from harnesslab.rollout.env import JSON, Action, Policy, Split, Task
from harnesslab.rollout.process.child import Child, Launch
from harnesslab.rollout.process.pool import Pool
from harnesslab.rollout.process.wire import pack_task, unpack_task


class ProcessEnvironment:
    """An Environment in processes of its own. Nothing is started before it is needed.

    ``folder`` holds ``starter/``. ``close`` ends its processes; so does its garbage collection, and our end.
    """

    def __init__(self, launch: Launch, folder: Path):
        self.launch = launch
        self._folder = folder
        self._pool = Pool(launch)
        self._policies = _PolicyHost(self._pool)
        self._lock = threading.RLock()
        self._hello: dict[str, Any] | None = None
        self._version: str | None = None
        self._tasks: dict[str, tuple[Task, ...]] = {}
        self._instructions: dict[str, dict[str, str]] = {}
        self._finalizer = weakref.finalize(self, _end, self._pool, self._policies)

    @property
    def name(self) -> str:
        """The environment's name. Starts a process."""
        return str(self._greeting()["name"])

    @property
    def max_steps(self) -> int:
        """Default action budget of an episode. Starts a process."""
        return int(self._greeting()["max_steps"])

    @property
    def version(self) -> str:
        """The environment's version. Raises EnvironmentUnavailable where data is missing."""
        with self._lock:
            if self._version is None:
                self._version = str(self._ask("version"))
            return self._version

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split. Raises EnvironmentUnavailable where data is missing, EnvironmentFault on a lie.

        Warns (TasksLeftOut) once, at the first listing, of tasks that cannot be played.
        """
        with self._lock:
            if not self._tasks and self.unplayable:
                warnings.warn(
                    TasksLeftOut(f"the environment '{self.launch.name}'", self.unplayable), stacklevel=readers_line()
                )
            if split not in self._tasks:
                found = self._ask("tasks", split=split)
                try:
                    self._tasks[split] = tuple(unpack_task(task) for task in found)
                except (TypeError, ValueError) as error:
                    raise EnvironmentFault(f"the environment '{self.launch.name}' listed no tasks: {error}") from None
            return self._tasks[split]

    def instruction(self, task: Task) -> str:
        """The text of a task without a reset; empty if the environment does not give it."""
        with self._lock:
            if task.split not in self._instructions:
                texts = self._ask("instructions", split=task.split)
                known = self.tasks(task.split)
                if not isinstance(texts, list) or len(texts) != len(known):
                    raise EnvironmentFault(f"the environment '{self.launch.name}' must give one instruction a task")
                self._instructions[task.split] = {
                    one.id: text for one, text in zip(known, texts, strict=True) if isinstance(text, str)
                }
            return self._instructions[task.split].get(task.id, "")

    def constants(self) -> list[Action]:
        """The environment's own candidates for the best constant answer; empty if it names none."""
        found = self._ask("constants")
        if not isinstance(found, list):
            raise EnvironmentFault(f"constants() of the environment '{self.launch.name}' must return a list of actions")
        return found

    def make(self) -> ProcessEnv:
        """A new instance; its process is taken at the first reset."""
        return ProcessEnv(self._pool)

    def oracle(self, task: Task) -> Policy:
        """A policy that solves the task, in the process of the policies."""
        return self._policies.make(task, "oracle")

    def null(self, task: Task) -> Policy:
        """The environment's own null agent where it has one, else the general one."""
        return self._policies.make(task, "null")

    @property
    def unplayable(self) -> Mapping[str, str]:
        """Why tasks are left out, by their names; empty where the environment does not say."""
        return dict(self._ask("unplayable"))

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return self._folder / "starter"

    def close(self) -> None:
        """End the processes. Safe to call twice."""
        self._finalizer()

    def _greeting(self) -> dict[str, Any]:
        with self._lock:
            if self._hello is None:
                child = self._pool.take()
                self._hello = child.hello
                self._pool.give(child)
            return self._hello

    def _ask(self, what: str, **arguments: Any) -> Any:
        child = self._pool.take()
        try:
            return child.call(what, **arguments)
        finally:
            self._pool.give(child)


class ProcessEnv:
    """One instance: a TextEnv that holds a process from the first reset until close."""

    threaded = True
    """The guard calls it on a worker thread, so that a slow process holds up nobody else."""

    def __init__(self, pool: Pool):
        self._pool = pool
        self._child: Child | None = None
        self._broken = False
        self._closed = False
        self._busy = threading.Lock()

    def reset(self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None) -> tuple[str, dict]:
        """Start a task; see :class:`~harnesslab.rollout.env.TextEnv`. Raises EnvironmentFault."""
        if self._closed:
            raise OrderError("This instance was closed: make() a new one.")
        observation, info = self._ask("reset", 2, seed=seed, options=None if options is None else dict(options))
        return observation, info

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        """Do one action; see :class:`~harnesslab.rollout.env.TextEnv`. Raises EnvironmentFault."""
        if self._child is None:
            raise OrderError("No episode is running: call reset() first.")
        observation, reward, terminated, truncated, info = self._ask("step", 5, action=action)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Give the process back. Never waits: a call that is still going on in another thread is cut off."""
        self._closed = True
        child = self._child
        if self._busy.acquire(blocking=False):
            self._busy.release()
            self._release()
        elif child is not None:
            child.kill()

    def _ask(self, what: str, size: int, **arguments: Any) -> list[Any]:
        with self._busy:
            try:
                if self._child is None:
                    self._child = self._pool.take()
                value = self._child.call(what, **arguments)
                if not isinstance(value, list) or len(value) != size:
                    raise EnvironmentFault(f"the environment's {what} must return {size} values, Gymnasium's signature")
            except BaseException:
                # Whatever went wrong, the state in there is not to be trusted any more.
                self._broken = True
                raise
            finally:
                closed = self._closed
        if closed:
            self._release()
        return value

    def _release(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        usable = not self._broken
        self._broken = False
        if usable:
            try:
                child.post("close")
            except EnvironmentFault:
                usable = False
        self._pool.give(child, usable=usable)


class _PolicyHost:
    """The one process in which oracles and null agents live, started when it is first needed."""

    def __init__(self, pool: Pool):
        self._pool = pool
        self._lock = threading.Lock()
        self._child: Child | None = None

    def make(self, task: Task, kind: str) -> Policy:
        with self._lock:
            if self._child is None or not self._child.ready():
                self.close()
                self._child = self._pool.take()
            child = self._child
            number = child.call("policy", task=pack_task(task), kind=kind)
        return _Policy(child, self._lock, number)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()


class _Policy:
    """A policy in another process. Calls of several policies take turns."""

    def __init__(self, child: Child, lock: threading.Lock, number: int):
        self._child, self._lock, self._number = child, lock, number

    def __call__(self, observation: str, info: dict) -> Action:
        with self._lock:
            action: Action = self._child.call(
                "policy_act", policy=self._number, observation=observation, info=dict(info)
            )
        return action


def _end(pool: Pool, policies: _PolicyHost) -> None:
    with contextlib.suppress(Exception):
        policies.close()
    pool.close()
