"""Backbones that stand in a model's place: the random control, a script, and a constant."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harnesslab.errors import BackboneError
from harnesslab.llm.body import digest
from harnesslab.llm.replies import tool_calls
from harnesslab.llm.types import Backbone, Completion, Request

Script = Callable[[Sequence[Mapping[str, Any]]], str]
"""From the messages of a request to the text of the reply."""


class RandomControl(Backbone):
    """The random control: what it solves under a harness, the harness solved alone.

    It picks uniformly among ``request.choices``, else among ``request.options``, else it utters one to six words of
    the last user message. Where tools are sent along, an option that is a JSON object of a name and arguments is
    uttered as a native call of that tool. The pick depends on the seed, the request and the repeat and on nothing else.
    """

    constrains = True
    control = True
    """Asks the episode loop for ``Request.options``, which a model never sees."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    @property
    def identity(self) -> dict[str, Any]:
        """The control and its seed."""
        return {"kind": "random control", "model": "random", "seed": self.seed}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """Pick a reply."""
        body = {
            "model": "random",
            "messages": list(request.messages),
            "seed": request.seed,
            "choices": request.choices,
            "options": request.options,
        }
        dice = random.Random(f"{self.seed}/{repeat}/{digest(body)}")
        among = request.choices or request.options
        text = dice.choice(among) if among else _babble(request.messages, dice)
        calls = _native(text) if request.tools else ()
        sent = {"model": "random", "messages": list(request.messages)}
        return Completion(text="" if calls else text, tool_calls=calls, model="random", body=sent)

    def close(self) -> None:
        """Holds nothing."""

    def __repr__(self) -> str:
        return f"LLM.random({self.seed})"


def _native(text: str) -> tuple[dict[str, Any], ...]:
    """The reply as one tool call; empty where it is not an object of a name and arguments."""
    try:
        value = json.loads(text)
    except ValueError:
        return ()
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        return ()
    return tool_calls({"id": "call-0", **value})


def _babble(messages: Sequence[Mapping[str, Any]], dice: random.Random) -> str:
    last = next((message.get("content") for message in reversed(messages) if message.get("role") == "user"), None)
    words = re.findall(r"\w+", str(last or ""))
    return " ".join(dice.choice(words) for _ in range(dice.randint(1, 6))) if words else ""


class Scripted(Backbone):
    """Replies from a function of the messages, or from a list in order; for tests and demonstrations.

    ``name`` is its identity: give two different scripts two names, or their runs are taken for the same.
    Raises BackboneError when the list is used up.
    """

    def __init__(self, script: Script | Sequence[str], name: str = "scripted"):
        self._script = script
        self._name = name
        self._next = 0

    @property
    def identity(self) -> dict[str, Any]:
        """Says that the replies are scripted, and by which script."""
        return {"kind": "scripted", "model": self._name}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """The script's reply."""
        if callable(self._script):
            text = self._script(request.messages)
        elif self._next < len(self._script):
            text = self._script[self._next]
            self._next += 1
        else:
            raise BackboneError(f"the script ended after {len(self._script)} replies; give it more, or a function")
        return Completion(text=text, model=self._name, body={"model": self._name, "messages": list(request.messages)})

    def close(self) -> None:
        """Holds nothing."""

    def __repr__(self) -> str:
        return "LLM.scripted(...)"


class Null(Backbone):
    """Always the same reply, the same object even: measures what everything around a model costs.

    Gives way to the event loop every ``_TURN`` calls only, so that other tasks are not starved.
    """

    _TURN = 1000

    def __init__(self, text: str = ""):
        self._reply = Completion(text=text, model="null")
        self._calls = 0

    @property
    def identity(self) -> dict[str, Any]:
        """The constant reply."""
        return {"kind": "null", "model": "null", "text": self._reply.text}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """The constant reply."""
        self._calls += 1
        if not self._calls % self._TURN:
            await asyncio.sleep(0)
        return self._reply

    def close(self) -> None:
        """Holds nothing."""

    def __repr__(self) -> str:
        return f"LLM.null({self._reply.text!r})"
