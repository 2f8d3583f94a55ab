"""Plays one episode outside a run, keeping all that the environment gave, so that it can be looked at."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harnesslab.errors import EnvironmentCrash, EnvironmentFault
from harnesslab.rollout.env import Action, Environment, Policy, Task, TextEnv, private, public

ERROR_LIMIT = 1_000
"""Characters of an error that are kept."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What one reset (``action`` None) or step gave, as it was given."""

    action: Action | None
    observation: Any
    info: Any
    reward: Any
    terminated: Any
    truncated: Any
    seconds: float

    def text(self) -> str:
        """All of it but the time, as text that is equal for equal values."""
        values = [self.observation, self.reward, self.terminated, self.truncated, self.info]
        try:
            return json.dumps(values, ensure_ascii=True)
        except (TypeError, ValueError):
            return repr(values)


@dataclass(slots=True)
class Played:
    """An episode. ``broken`` says in words what was raised or malformed and ended it early."""

    moments: list[Moment] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    broken: str = ""
    solved: bool = False

    def digest(self) -> str:
        """A hash of the whole trajectory."""
        return hashlib.sha256("\n".join([*self.texts, self.broken]).encode()).hexdigest()

    def difference(self, other: Played) -> str:
        """Where the two trajectories part, in words; empty where they do not."""
        if self.digest() == other.digest():
            return ""
        pairs = zip(self.texts, other.texts, strict=False)
        place = next((i for i, (one, two) in enumerate(pairs) if one != two), min(len(self.texts), len(other.texts)))
        return "the reset differs" if place == 0 else f"step {place} differs"


def play(env: TextEnv, task: Task, policy: Policy, budget: int, *, spoil: bool = False) -> Played:
    """One episode of at most ``budget`` steps. What the environment raises is put into ``broken``.

    With ``spoil`` each returned ``info`` is emptied after it was read, as careless callers do.
    """
    played = Played()
    _take(played, None, lambda: env.reset(seed=task.seed, options=task.options), spoil)
    while not played.broken and len(played.moments) <= budget:
        last = played.moments[-1]
        try:
            action = policy(last.observation, last.info)
        except EnvironmentFault as error:
            played.broken = f"the policy failed: {str(error)[:ERROR_LIMIT]}"
            break
        except Exception as error:  # noqa: BLE001 - a policy may raise anything
            played.broken = f"the policy raised {type(error).__name__}: {error}"
            break
        _take(played, action, lambda action=action: env.step(action), spoil)  # type: ignore[misc]
        if played.broken or played.moments[-1].terminated or played.moments[-1].truncated:
            break
    played.solved = not played.broken and is_solved(played.moments[-1])
    return played


def is_solved(moment: Moment) -> bool:
    """Does the private part say so?"""
    info = moment.info
    return isinstance(info, dict) and isinstance(info.get("private"), dict) and private(info).get("solved") is True


def walker(seed: int) -> Policy:
    """Picks among the admissible actions at random; where none are listed it says "look"."""
    draw = random.Random(seed)

    def pick(_observation: str, info: dict[str, Any]) -> Action:
        choices = public(info).get("admissible") or ["look"]
        chosen: Action = draw.choice(choices)
        return chosen

    return pick


def null_policy(environment: Environment, task: Task) -> Policy:
    """The environment's own null agent where it has one, else one that says nothing."""
    own = getattr(environment, "null", None)
    if callable(own):
        policy: Policy = own(task)
        return policy
    return lambda _observation, _info: ""


def oracle_of(environment: Environment, task: Task) -> Policy | None:
    """The environment's oracle; None where it has none, or none for this task, which it says by an EnvironmentFault.

    Where it raises anything else, so does the policy at its first step.
    """
    own = getattr(environment, "oracle", None)
    if not callable(own):
        return None
    try:
        policy: Policy = own(task)
    except EnvironmentCrash as error:
        return _raising(error)
    except EnvironmentFault:
        return None
    except Exception as error:  # noqa: BLE001 - an environment may raise anything
        return _raising(error)
    return policy


def _raising(error: Exception) -> Policy:
    def policy(_observation: str, _info: dict[str, Any]) -> Action:
        raise error

    return policy


def trajectory_digest(environment: Environment, task: Task, budget: int) -> str:
    """A hash of the oracle's episode and of a walk, each in a fresh instance."""
    digests = []
    for policy in (oracle_of(environment, task) or walker(1), walker(0)):
        env = environment.make()
        try:
            digests.append(play(env, task, policy, budget).digest())
        finally:
            env.close()
    return "-".join(digests)


def _take(played: Played, action: Action | None, act: Callable[[], Any], spoil: bool) -> None:
    name, size = ("reset", 2) if action is None else ("step", 5)
    start = time.perf_counter()
    try:
        result = act()
    except EnvironmentFault as error:
        played.broken = str(error)[:ERROR_LIMIT]
        return
    except Exception as error:  # noqa: BLE001 - an environment may raise anything
        on = "" if action is None else f" on {describe(action)}"
        played.broken = f"{name} raised {type(error).__name__}{on}: {str(error)[:ERROR_LIMIT]}"
        return
    seconds = time.perf_counter() - start
    if not isinstance(result, tuple | list) or len(result) != size:
        played.broken = f"{name} must return {size} values"
        return
    kept = copy.deepcopy(result) if spoil else result
    reward, terminated, truncated = kept[1:4] if action is not None else (0.0, False, False)
    moment = Moment(action, kept[0], kept[-1], reward, terminated, truncated, seconds)
    if not isinstance(moment.info, dict):
        played.broken = f"{name} must return info as a dict, not {type(moment.info).__name__}"
        return
    played.moments.append(moment)
    played.texts.append(moment.text())
    if spoil:
        empty(result[-1])


def empty(value: Any) -> None:
    """Empty all lists and dicts within a value, from the inside out."""
    if isinstance(value, dict):
        for inner in value.values():
            empty(inner)
        value.clear()
    elif isinstance(value, list):
        for inner in value:
            empty(inner)
        value.clear()


def describe(action: Any) -> str:
    """An action in an error message, cut short."""
    text = repr(action)
    return text if len(text) <= 80 else text[:77] + "..."
