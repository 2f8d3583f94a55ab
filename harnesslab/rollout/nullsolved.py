"""Tasks that the null agent solves: kept where a check found them, and left out of an environment's splits.

A task that is solved by doing nothing says nothing about a harness. ``harnesslab envs check`` finds such tasks and keeps
their ids for that version of the environment; from then on it is loaded without them, under a version that says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from harnesslab.data import data_dir
from harnesslab.errors import ConfigError
from harnesslab.plainjson import loads
from harnesslab.rollout.env import Environment, Split, Task

FOLDER = "checks"


def keep(environment: Environment, checked: Iterable[str], solved: Iterable[str]) -> None:
    """Remember which of the ``checked`` tasks the null agent has solved; what is known of others stays."""
    known = (_read(environment) - set(checked)) | set(solved)
    file = _file(environment)
    text = json.dumps({"version": environment.version, "null_solved": sorted(known)}, indent=1)
    try:
        if not known:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", "utf-8")
    except OSError as error:
        raise ConfigError(f"the result of the check cannot be stored in {file}: {error.strerror}") from error


def without_null_solved(environment: Environment) -> Environment:
    """The environment without the tasks that a check has found; itself where none is known. Starts no process."""
    if not any(_places(environment)):
        return environment
    return _Without(environment)


class _Without:
    """An environment whose splits lack some tasks; all else is that environment's."""

    def __init__(self, environment: Environment):
        self._environment = environment

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_environment":
            raise AttributeError(name)
        return getattr(self._environment, name)

    @cached_property
    def null_solved(self) -> frozenset[str]:
        """The ids of the tasks that are left out. Read once: a later check does not change an environment in use."""
        return frozenset(_read(self._environment))

    @property
    def name(self) -> str:
        """The environment's name."""
        return self._environment.name

    @property
    def version(self) -> str:
        """The environment's version, with a hash of what is left out."""
        gone = sorted(self.null_solved)
        digest = hashlib.sha256(json.dumps(gone).encode()).hexdigest()[:6]
        return f"{self._environment.version}-{len(gone)}.{digest}" if gone else self._environment.version

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split that the null agent does not solve."""
        gone = self.null_solved
        return [task for task in self._environment.tasks(split) if task.id not in gone]


def _read(environment: Environment) -> set[str]:
    file = _file(environment)
    try:
        return set(map(str, loads(file.read_text("utf-8"))["null_solved"]))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file} cannot be read ({error}); delete it, and check the environment again") from error


def _file(environment: Environment) -> Path:
    digest = hashlib.sha256(environment.version.encode()).hexdigest()[:16]
    return data_dir() / FOLDER / f"{_key(environment)}-{digest}.json"


def _places(environment: Environment) -> Iterable[Path]:
    return (data_dir() / FOLDER).glob(f"{_key(environment)}-*.json")


def _key(environment: Environment) -> str:
    """The name, which a process need not be started for."""
    launch = getattr(environment, "launch", None)
    name = str(launch.name if launch is not None else environment.name)
    return "".join(char if char.isalnum() or char in "-_" else "_" for char in name)
