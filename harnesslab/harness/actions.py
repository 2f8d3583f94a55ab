"""Small questions about actions and the past that several kinds ask."""

from __future__ import annotations

import json
import re
from typing import Any

from harnesslab.harness.context import Action, Context

_WORD = re.compile(r"\w+")


def key(action: Action) -> str:
    """A string that is equal for equal actions; case and spaces of a text action do not count."""
    if isinstance(action, str):
        return " ".join(action.split()).casefold()
    return json.dumps(action, sort_keys=True, ensure_ascii=False)


def shown(action: Action) -> str:
    """An action as a person or a model reads it; patterns of kinds are searched in this form."""
    if isinstance(action, str):
        return action
    return f"{action.get('name')} {json.dumps(action.get('arguments', {}), ensure_ascii=False)}"


def tried_here(context: Context) -> set[str]:
    """Keys of the actions that were already done when the observation read exactly as it does now."""
    now = context.observation
    return {key(turn.action) for turn in context.history if turn.action is not None and turn.observation == now}


def untried(context: Context, actions: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``actions`` that were not yet done at this observation, in their order."""
    done = tried_here(context)
    return tuple(action for action in actions if key(action) not in done)


def is_admissible(context: Context, action: Action) -> bool:
    """Whether the environment lists the action; true where it lists none, and for tool calls."""
    if context.admissible is None or not isinstance(action, str):
        return True
    return action in context.admissible


def words(text: str) -> list[str]:
    """Lower-case words and numbers of a text."""
    return _WORD.findall(text.casefold())


def edit_argument(action: Action, argument: str | None, change: Any) -> Action | None:
    """Apply ``change`` (str to str) to a text action, or to the text arguments of a tool call.

    ``argument`` names one argument; None means all that are text. None when nothing changed.
    """
    if isinstance(action, str):
        text = change(action)
        return text if text != action else None
    arguments = action.get("arguments", {})
    names = [argument] if argument else list(arguments)
    changed = {n: change(arguments[n]) for n in names if isinstance(arguments.get(n), str)}
    if all(arguments[name] == text for name, text in changed.items()):
        return None
    return {**action, "arguments": {**arguments, **changed}}
