"""The identity of a measurement: two runs compare only when it is equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.llm.types import Backbone
from harnesslab.rollout.env import Environment, Task


def measurement_identity(
    environment: Environment,
    tasks: Sequence[Task],
    backbone: Backbone,
    *,
    budget: int,
    repeats: int,
    seed: int,
    tolerance: float | None = None,
    leave_out: Sequence[str] = (),
) -> dict[str, Any]:
    """Environment and version, panel, backbone with its sampling, action budget; plain JSON.

    The panel is hashed by task id, seed and options, in order. ``tolerance`` and ``leave_out`` are in it where they
    are not the default, so that older records keep their identity.
    """
    panel = [[task.id, task.seed, dict(task.options)] for task in tasks]
    chosen = {"tolerance": tolerance, "leave_out": sorted(set(leave_out)) or None}
    return {
        "environment": environment.name,
        "version": environment.version,
        "panel": digest(panel),
        "tasks": len(tasks),
        "repeats": repeats,
        "backbone": backbone.identity,
        "budget": budget,
        "seed": seed,
    } | {name: value for name, value in chosen.items() if value is not None}


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """The keys in which two identities differ, for the error that refuses to compare them."""
    return sorted(key for key in {*left, *right} if left.get(key) != right.get(key))


def digest(value: Any) -> str:
    """A short stable hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
