"""Small questions about actions and the past that several kinds ask."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

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


def situations(context: Context) -> list[str]:
    """The observation that each past step, and last the present one, stood in front of.

    A step that was invalid changed nothing, so the step after it stands where it stood, whatever message it was shown.
    """
    found: list[str] = []
    before_invalid = False
    for turn in context.history:
        found.append(found[-1] if before_invalid else turn.observation)
        before_invalid = turn.invalid
    found.append(found[-1] if before_invalid else context.observation)
    return found


def tried_here(context: Context) -> Counter[str]:
    """How often each action (by :func:`key`) was already given in the present situation."""
    *past, now = situations(context)
    return Counter(
        key(turn.action)
        for turn, where in zip(context.history, past, strict=True)
        if turn.action is not None and where == now
    )


def untried(context: Context, actions: tuple[str, ...]) -> tuple[str, ...]:
    """Those of ``actions`` that were not yet given in the present situation, in their order."""
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


def edit_argument(action: Action, argument: str | None, change: Callable[[str], str]) -> Action | None:
    """Apply ``change`` to a text action, or to the text arguments of a tool call.

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
