"""The agent that does nothing. Imported by environments' own processes, so it needs nothing but the protocol."""

from __future__ import annotations

from collections.abc import Callable

from harnesslab.rollout.env import Action, Environment, Policy, Task, public


def null_policy(observation: str, info: dict) -> Action:
    """Does nothing: an empty line, or the last tool that is offered with empty arguments of the right type.

    Tools that end an episode usually come last, so that on tool environments this is the agent that gives up at once.
    """
    tools = public(info).get("tools")
    if not tools:
        return ""
    function = tools[-1].get("function", tools[-1])
    schema = function.get("parameters") or {}
    empty = {"array": [], "object": {}, "integer": 0, "number": 0, "boolean": False}
    return {
        "name": function.get("name", ""),
        "arguments": {
            name: empty.get((schema.get("properties") or {}).get(name, {}).get("type"), "")
            for name in schema.get("required") or ()
        },
    }


def null_of(environment: Environment, task: Task) -> Policy:
    """The environment's own null agent where it has one (``null(task)``), else the general one."""
    own: Callable[[Task], Policy] | None = getattr(environment, "null", None)
    return own(task) if callable(own) else null_policy
