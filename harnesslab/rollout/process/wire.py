"""What the two sides say: requests ``{"id", "do", ...}`` and replies ``{"id", "value"}`` or ``{"id", "error"}``.

| do | with | value |
|---|---|---|
| ``start`` | :class:`Start` as a dict | ``{"protocol", "name", "max_steps"}`` |
| ``version`` | | text |
| ``tasks`` | ``split`` | a list of tasks, see :func:`pack_task` |
| ``instructions`` | ``split`` | a list of texts, one a task, empty if the environment does not give them |
| ``constants`` | | a list of actions, empty if the environment names none |
| ``unplayable`` | | the reasons by task id, empty if every task can be played |
| ``reset`` | ``seed``, ``options`` | ``[observation, info]`` |
| ``step`` | ``action`` | ``[observation, reward, terminated, truncated, info]`` |
| ``close`` | | null |
| ``policy`` | ``task``, ``kind``: ``oracle`` or ``null`` | a number that names the policy |
| ``policy_act`` | ``policy``, ``observation``, ``info`` | an action |

An error is ``{"kind", "text"}``. ``kind`` is ``unavailable`` (data or packages are missing), ``config`` (an option is
wrong), ``unplayable`` (no task can be played; a third key, ``unplayable``, holds the reasons by task id), ``told`` (an
EnvironmentFault of the environment's own), ``memory``, or ``fault`` (anything else; the text goes on "the environment's
step ..."). Standard library only: the child reads this, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harnesslab.rollout.env import Task

PROTOCOL = 1
"""Raised when a request or reply changes its meaning."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a child is told first. ``packages`` are (name, folder) to be importable as they are, parents first."""

    packages: tuple[tuple[str, str], ...]
    module: str
    attribute: str
    options: dict[str, Any] = field(default_factory=dict)


def pack_task(task: Task) -> dict[str, Any]:
    """A task as JSON."""
    return {
        "id": task.id,
        "split": task.split,
        "family": task.family,
        "seed": task.seed,
        "options": dict(task.options),
    }


def unpack_task(value: Any) -> Task:
    """A task from JSON. Raises ValueError where it is none."""
    if not isinstance(value, dict) or set(value) != {"id", "split", "family", "seed", "options"}:
        raise ValueError("a task must have id, split, family, seed and options")
    texts = (value["id"], value["split"], value["family"])
    if not all(isinstance(text, str) for text in texts) or not isinstance(value["options"], dict):
        raise ValueError("a task's id, split and family must be text, and its options a dict")
    if isinstance(value["seed"], bool) or not isinstance(value["seed"], int):
        raise ValueError("a task's seed must be a whole number")
    return Task(**value)
