"""The identity of a measurement: two runs compare only when it is equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.errors import BackboneError, EnvironmentUnavailable, HarnesslabError
from harnesslab.llm.types import MinimalBackbone
from harnesslab.llm.wrapper import as_backbone
from harnesslab.rollout.env import Environment, Task


def measurement_identity(
    environment: Environment,
    tasks: Sequence[Task],
    backbone: MinimalBackbone,
    *,
    budget: int,
    repeats: int,
    seed: int,
    tolerance: float | None = None,
    leave_out: Sequence[str] = (),
    first: int = 0,
) -> dict[str, Any]:
    """Environment and version, panel, backbone with its sampling, action budget; plain JSON.

    The panel is hashed by task id, seed and options, in order. ``tolerance``, ``leave_out`` and the number of the ``first`` repeat
    are in it where they are not the default, so that older records keep their identity.
    """
    for key, value in (("name", environment.name), ("version", environment.version)):
        if not isinstance(value, str) or not value.strip():
            raise EnvironmentUnavailable(
                f"the {key} of {type(environment).__name__} is {value!r:.60}; an environment's {key} must be text"
            )
    panel = [[task.id, task.seed, dict(task.options)] for task in tasks]
    chosen = {"tolerance": tolerance, "leave_out": sorted(set(leave_out)) or None, "first": first or None}
    return {
        "environment": environment.name,
        "version": environment.version,
        "panel": digest(panel),
        "tasks": len(tasks),
        "repeats": repeats,
        "backbone": identity_of(backbone),
        "budget": budget,
        "seed": seed,
    } | {name: value for name, value in chosen.items() if value is not None}


def identity_of(backbone: MinimalBackbone) -> dict[str, Any]:
    """What the backbone says that it is, checked: a JSON object with its name under ``model``. Raises BackboneError."""
    identity = _declared(backbone, "identity")
    name = type(backbone).__name__
    if not isinstance(identity, Mapping):
        raise BackboneError(
            f"the identity of {name} is a {type(identity).__name__}; it must be a mapping with a 'model'"
        )
    try:
        text = json.dumps(dict(identity), allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BackboneError(f"the identity of {name} is not plain JSON: {error}") from error
    model = identity.get("model")
    if not isinstance(model, str) or not model.strip():
        raise BackboneError(f"the identity of {name} needs its name as text under 'model', not {model!r:.60}")
    return dict(identity)


def is_greedy(backbone: MinimalBackbone) -> bool:
    """Whether the backbone says that it gives the same reply to the same request: temperature 0, or a script."""
    identity = identity_of(backbone)
    sampling = identity.get("sampling")
    zero = isinstance(sampling, Mapping) and sampling.get("temperature") == 0
    return zero or identity.get("kind") in ("scripted", "null")


def concurrency_of(backbone: MinimalBackbone) -> int:
    """How many requests the backbone takes at once, checked: a whole number of at least 1. Raises BackboneError."""
    number = _declared(backbone, "concurrency")
    if not isinstance(number, int) or number < 1:
        name = type(backbone).__name__
        raise BackboneError(f"the concurrency of {name} must be a whole number of at least 1, not {number!r:.60}")
    return number


def _declared(backbone: MinimalBackbone, member: str) -> Any:
    """A member of a backbone, which may be anybody's class. Raises BackboneError where reading it fails."""
    try:
        return getattr(as_backbone(backbone), member)
    except HarnesslabError:
        raise
    except Exception as error:
        raise BackboneError(
            f"the {member} of {type(backbone).__name__} raised {type(error).__name__}: {error}"
        ) from error


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """The keys in which two identities differ, for the error that refuses to compare them."""
    return sorted(key for key in {*left, *right} if left.get(key) != right.get(key))


def digest(value: Any) -> str:
    """A short stable hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
