"""The text-environment protocol: Gymnasium's signatures, plain JSON values only.

Two small protocols. An :class:`Environment` is what an entry point of the group
``harnesslab.envs`` yields: it knows its tasks and makes instances. A :class:`TextEnv` is
one such instance, which plays one episode at a time. Heavy environments run as child
processes behind the same two protocols, which is why every value that crosses them is
plain JSON.

``info`` always has two parts and nothing else::

    {"public": {"instruction": str,          # the task as the agent is told it
                "admissible": [action, ...],  # optional: every action that is possible now
                "tools": [schema, ...],       # optional: OpenAI function schemas
                "invalid": bool},             # optional: the last action was not understood
     "private": {"solved": bool,              # required: is the goal reached
                 "progress": float}}          # optional: share of subgoals reached, 0 to 1

``public`` may reach the agent and the harness. ``private`` stays with the trusted loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from harnesslab.errors import EnvironmentUnavailable, HarnesslabError, RepeatedTask

JSON: TypeAlias = Any
"""A plain JSON value: None, bool, int, float, str, list or dict of such."""

Action: TypeAlias = "str | dict[str, JSON]"
"""What an agent does: a line of text, or a tool call ``{"name": str, "arguments": dict}``."""

Split = Literal["search", "gate", "sealed"]
SPLITS: tuple[Split, ...] = ("search", "gate", "sealed")
"""``search``: proposers learn from it. ``gate``: decides. ``sealed``: held out, opened on purpose."""


@dataclass(frozen=True, slots=True)
class Task:
    """One seeded problem of an environment.

    ``id`` is unique within the environment and never reaches the agent. ``family`` groups
    tasks of one sort. ``options`` is handed to :meth:`TextEnv.reset` with ``seed``.
    """

    id: str
    split: Split
    family: str
    seed: int = 0
    options: Mapping[str, JSON] = field(default_factory=dict)


@runtime_checkable
class TextEnv(Protocol):
    """One playable instance. Not thread-safe; reset may be called again after an episode."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None) -> tuple[str, dict]:
        """Start the task that ``seed`` and ``options`` name; return (observation, info)."""
        ...

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        """Do one action; return (observation, reward, terminated, truncated, info).

        An action that is not understood is no error: the observation says so, and
        ``info["public"]["invalid"]`` is true.
        """
        ...

    def close(self) -> None:
        """Give back what the instance holds. Safe to call twice."""
        ...


Policy: TypeAlias = Callable[[str, dict], Action]
"""Picks an action from (observation, info). Oracles may read ``info["private"]``; agents never see it."""


class Environment(Protocol):
    """A family of tasks and the way to play them; what an entry point names.

    Optional members: ``null(task)``, a policy that does nothing; ``instruction(task)``, the text of a task without a
    reset, by which tasks that occur in two splits are found when a lab is opened; ``constants()``, a list of actions among which
    the best constant answer is chosen; ``deadline``, the seconds that one call may take; ``volatile``, regular expressions of
    what differs whenever it is played and means nothing, such as times, which certification masks; ``unplayable``, the reasons by task id why
    tasks that exist cannot be played here.
    """

    @property
    def name(self) -> str:
        """The name that people type."""
        ...

    @property
    def version(self) -> str:
        """Part of a measurement's identity: raise it whenever a task, a text or the grading changes."""
        ...

    @property
    def max_steps(self) -> int:
        """Default action budget of an episode."""
        ...

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, in a fixed order. Raises EnvironmentUnavailable where data is missing."""
        ...

    def make(self) -> TextEnv:
        """A new instance."""
        ...

    def oracle(self, task: Task) -> Policy:
        """A policy that solves the task: the proof that the task can be solved."""
        ...

    def starter(self) -> Path:
        """The folder with the baseline harness that ``Lab.open`` copies into a new lab."""
        ...


MAX_STEPS = 30
"""Action budget of an environment that does not name one."""


def step_budget(environment: Environment) -> int:
    """The environment's ``max_steps``; :data:`MAX_STEPS` where it has none."""
    steps = getattr(environment, "max_steps", None)
    if steps is None:
        return MAX_STEPS
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise EnvironmentUnavailable(
            f"max_steps of '{environment.name}' is {steps!r:.60}; it must be a number of 1 or more"
        )
    return steps


def tasks_of(environment: Environment, split: Split) -> list[Task]:
    """The environment's tasks of a split. Raises EnvironmentUnavailable where it breaks, or
    gives anything else, and RepeatedTask where an id occurs twice."""
    try:
        tasks = list(environment.tasks(split))
    except HarnesslabError:
        raise
    except Exception as error:
        raise EnvironmentUnavailable(
            f"the tasks of '{environment.name}' cannot be listed: tasks({split!r}) raised {type(error).__name__}: {error}"
        ) from error
    for task in tasks:
        if wrong := _wrong_with(task):
            raise EnvironmentUnavailable(f"tasks({split!r}) of '{environment.name}' must return Task objects{wrong}")
    repeated = next((name for name, times in Counter(task.id for task in tasks).items() if times > 1), None)
    if repeated is not None:
        raise RepeatedTask(
            f"'{environment.name}' uses the task id {repeated!r} more than once in {split}: give each task an id of its own"
        )
    return tasks


def _wrong_with(task: Any) -> str:
    if not isinstance(task, Task):
        return f", not {type(task).__name__}"
    if not isinstance(task.id, str) or not task.id:
        return f" whose id is text, not {task.id!r}"
    if not isinstance(task.family, str):
        return f" whose family is text: that of {task.id!r} is {type(task.family).__name__}"
    if isinstance(task.seed, bool) or not isinstance(task.seed, int):
        return f" whose seed is a whole number: that of {task.id!r} is {task.seed!r:.60}"
    if not isinstance(task.options, Mapping):
        return f" whose options are a mapping: those of {task.id!r} are {type(task.options).__name__}"
    return ""


def public(info: Mapping[str, Any]) -> dict[str, Any]:
    """The part of ``info`` that the agent and the harness may see."""
    return dict(info.get("public", {}))


def private(info: Mapping[str, Any]) -> dict[str, Any]:
    """The part of ``info`` that stays with the trusted loop."""
    return dict(info.get("private", {}))
