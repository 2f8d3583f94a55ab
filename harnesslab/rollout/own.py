"""Whether an executed action is the model's own, or the harness's.

A step is *forced* where the harness decided what the environment got:

- it left the model a single choice, or
- a regulation replaced the action by another, or
- what was executed is not what the protocol's strict reading finds in the chosen reply. Where that reading finds
  nothing, each value of the action, or its name where it has none, must occur in the reply, word for word.

Case, spaces, quotes and brackets around words and the types of arguments do not count, so a kind that only adds quotes and a ``rescue``
that copies the action leave it the model's own. ``snap`` and a ``rewrite`` that change words make it forced. Choosing
among several replies of the model is not forced: each of them is its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harnesslab.harness.context import Action, Context, Proposal
from harnesslab.harness.protocol import parse
from harnesslab.plainjson import leaves

_WORD = re.compile(r"\w+|[^\w\s\"'`\[\]]")


def forced(context: Context, choices: int, proposal: Proposal, replaced: Action | None, executed: Action) -> bool:
    """Whether the harness decided ``executed``. ``replaced`` is the action of a regulation, if there was one."""
    if choices == 1:
        return True
    if replaced is not None and (proposal.action is None or _words(replaced) != _words(proposal.action)):
        return True
    said = parse(proposal.raw, proposal.tool_calls, context.protocol, context.tools, cut=proposal.cut).action
    if said is not None:
        return _words(said) != _words(executed)
    calls = [call.get("function") or call for call in proposal.tool_calls]
    reply = "\n".join([proposal.raw, *(f"{call.get('name', '')} {call.get('arguments', '')}" for call in calls)])
    for escaped, plain in (("\\n", "\n"), ("\\t", "\t"), ('\\"', '"')):
        reply = reply.replace(escaped, plain)
    words = " " + " ".join(_WORD.findall(reply.casefold())) + " "
    values = [value for value in _values(executed) if value]
    if not values and isinstance(executed, dict):
        values = [_WORD.findall(str(executed.get("name")).casefold())]
    return not all(f" {' '.join(value)} " in words for value in values)


def _words(action: Action) -> Any:
    """The action as compared: its words, those of each argument by name."""
    if isinstance(action, str):
        return _WORD.findall(action.casefold())
    arguments = action.get("arguments") or {}
    return str(action.get("name")), {name: list(_leaves(value)) for name, value in arguments.items()}


def _values(action: Action) -> Iterator[list[str]]:
    yield from [_WORD.findall(action.casefold())] if isinstance(action, str) else _leaves(action.get("arguments") or {})


def _leaves(value: Any) -> Iterator[list[str]]:
    return ([] if leaf is None else _WORD.findall(str(leaf).casefold()) for leaf in leaves(value))
