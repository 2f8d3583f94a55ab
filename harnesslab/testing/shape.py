"""What is wrong with one returned value: the protocol, plain JSON, size, and privacy."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from harnesslab.plainjson import texts
from harnesslab.rollout.env import Task
from harnesslab.rollout.guard import OBSERVATION_LIMIT
from harnesslab.testing.play import Moment

PUBLIC_LIMIT = 200_000
"""Characters of the public info as JSON."""
SECRET = 6
"""Private text of fewer characters (a colour, a number) may well be seen for other reasons, and is not searched for."""

Problem = tuple[str, str]
"""(key of the check, what is wrong)"""


def problems(moment: Moment, task: Task) -> Iterator[Problem]:
    """All that is wrong with what one reset or step gave."""
    place = "reset" if moment.action is None else "step"
    for name in ("observation", "reward", "info"):
        fault = json_fault(getattr(moment, name), name)
        if fault:
            yield "json", f"{place}: {fault}"
    yield from (("protocol", f"{place}: {fault}") for fault in _protocol_faults(moment))
    yield from (("bounded", f"{place}: {fault}") for fault in _size_faults(moment))
    yield from (("privacy", f"{place}: {fault}") for fault in _leaks(moment, task))


def json_fault(value: Any, path: str) -> str:
    """Where a value is not plain JSON, in words; empty where it is. Exact types: a tuple is not a list."""
    kind = type(value)
    if value is None or kind in (bool, int):
        return ""
    if kind is float:
        return "" if math.isfinite(value) else f"{path} is {value}, which JSON does not have"
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"{path} holds a lone surrogate, which is not UTF-8"
        return ""
    if kind is list:
        return next(filter(None, (json_fault(item, f"{path}[{i}]") for i, item in enumerate(value))), "")
    if kind is dict:
        wrong = next((key for key in value if type(key) is not str), None)
        if wrong is not None:
            return f"{path} has the key {wrong!r}, which is not a string"
        return next(filter(None, (json_fault(item, f"{path}[{key!r}]") for key, item in value.items())), "")
    return f"{path} is a {kind.__name__}, which JSON does not have"


def _protocol_faults(moment: Moment) -> Iterator[str]:
    if not isinstance(moment.observation, str):
        yield f"the observation is a {type(moment.observation).__name__}, not text"
    if isinstance(moment.reward, bool) or not isinstance(moment.reward, int | float):
        yield f"the reward is {moment.reward!r}, not a number"
    for name in ("terminated", "truncated"):
        if not isinstance(getattr(moment, name), bool):
            yield f"{name} is {getattr(moment, name)!r}, not a bool"
    if set(moment.info) != {"public", "private"}:
        yield f"info has the parts {sorted(map(str, moment.info))}, not exactly 'private' and 'public'"
    for name, check in (("public", _public_faults), ("private", _private_faults)):
        part = moment.info.get(name, {})
        if isinstance(part, Mapping):
            yield from check(part, moment)
        else:
            yield f"info['{name}'] is a {type(part).__name__}, not a dict"


def _public_faults(part: Mapping[str, Any], moment: Moment) -> Iterator[str]:
    instruction = part.get("instruction")
    if moment.action is None and not (isinstance(instruction, str) and instruction.strip()):
        yield "info['public']['instruction'] must be the task in words"
    admissible = part.get("admissible", [])
    if not isinstance(admissible, list) or not all(isinstance(action, str | dict) for action in admissible):
        yield "info['public']['admissible'] must be a list of actions"
    tools = part.get("tools", [])
    named = isinstance(tools, list) and all(
        isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping) and tool["function"].get("name")
        for tool in tools
    )
    if not named:
        yield "info['public']['tools'] must be a list of OpenAI function schemas"
    if not isinstance(part.get("invalid", False), bool):
        yield "info['public']['invalid'] must be a bool"


def _private_faults(part: Mapping[str, Any], _moment: Moment) -> Iterator[str]:
    if not isinstance(part.get("solved"), bool):
        yield "info['private']['solved'] must be a bool"
    progress = part.get("progress", 0.0)
    if isinstance(progress, bool) or not isinstance(progress, int | float) or not 0 <= progress <= 1:
        yield f"info['private']['progress'] is {progress!r}, not a number from 0 to 1"


def _size_faults(moment: Moment) -> Iterator[str]:
    if isinstance(moment.observation, str) and len(moment.observation) > OBSERVATION_LIMIT:
        yield f"the observation has {len(moment.observation)} characters, more than {OBSERVATION_LIMIT}"
    size = len(json.dumps(moment.info.get("public"), default=repr, skipkeys=True))
    if size > PUBLIC_LIMIT:
        yield f"the public info has {size} characters of JSON, more than {PUBLIC_LIMIT}"


def _leaks(moment: Moment, task: Task) -> Iterator[str]:
    """Private keys in the public part, private text where the agent can see it, the task's id.

    Private text may be seen in answer to an action that looks for it, so observations are searched where no
    action explains them: at reset, and after an action that was not understood.
    """
    public, private = moment.info.get("public"), moment.info.get("private")
    if not isinstance(public, Mapping) or not isinstance(private, Mapping):
        return
    instruction = str(public.get("instruction", ""))
    shared = _keys(public) & set(private)
    if shared:
        yield f"the public info has the private key {sorted(shared)[0]!r}"
    seen = list(texts({key: value for key, value in public.items() if key != "instruction"}))
    if moment.action is None or public.get("invalid") is True:
        seen.append(str(moment.observation))
    for secret in sorted(set(texts(private))):
        if len(secret) >= SECRET and secret not in instruction and any(secret in text for text in seen):
            yield f"the private text {secret[:60]!r} can be seen by the agent"
    everything = [*seen, instruction, str(moment.observation)]
    # A short id, or one without a digit, may be a word of the world.
    if len(task.id) >= SECRET and any(c.isdigit() for c in task.id) and any(task.id in text for text in everything):
        yield f"the task id {task.id!r} can be seen by the agent"


def _keys(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        return set(map(str, value)).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list | tuple) else set()
