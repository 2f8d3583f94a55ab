"""Backbones that stand in a model's place: controls without a mind, a script, and a constant."""

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


class Mindless(Backbone):
    """A control that picks by a rule among the replies that the harness leaves; asks the episode loop for them, as a model never does.

    It picks among ``request.choices``, else among ``request.options``, else among the words of the last user message. Where tools are
    sent along, an option that is a JSON object of a name and arguments is uttered as a native call of that tool.
    """

    constrains = True
    control = True
    kind = ""

    @property
    def identity(self) -> dict[str, Any]:
        """The kind of control; there is nothing else to it."""
        return {"kind": f"{self.kind} control", "model": self.kind}

    def pick(self, among: Sequence[str], request: Request) -> str:
        """The reply, one of ``among``, which is never empty."""
        raise NotImplementedError

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """Pick a reply."""
        among = request.choices or request.options or tuple(dict.fromkeys(_last_words(request.messages))) or ("",)
        text = self.pick(among, request)
        calls = _native(text) if request.tools else ()
        sent = {"model": self.kind, "messages": list(request.messages)}
        return Completion(text="" if calls else text, tool_calls=calls, model=self.kind, body=sent)

    def close(self) -> None:
        """Holds nothing."""

    def __repr__(self) -> str:
        return f"LLM.{self.kind}()"


class FirstControl(Mindless):
    """Always the first reply that is left."""

    kind = "first"

    def pick(self, among: Sequence[str], request: Request) -> str:
        """The first one."""
        return among[0]


class OverlapControl(Mindless):
    """The reply that shares most words with the task, without repeating itself.

    Each word counts once, in any case; of two that share as many the shorter one counts, then the first. What was replied earlier in the
    episode is taken again only when everything was, and then the least recent.
    """

    kind = "overlap"

    def pick(self, among: Sequence[str], request: Request) -> str:
        """The best one that is new."""
        past = {_key(reply): place for place, reply in enumerate(request.past)}
        task = _words(request.instruction)

        def rank(place: int) -> tuple[int, int, int, int]:
            words = _words(among[place])
            return (past.get(_key(among[place]), -1), -len(words & task), len(words), place)

        return among[min(range(len(among)), key=rank)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.casefold()))


def _key(reply: str) -> str:
    """The reply as it is compared: JSON whatever its spaces and the order of its keys."""
    try:
        return json.dumps(json.loads(reply), sort_keys=True)
    except ValueError:
        return " ".join(reply.split())


def _native(text: str) -> tuple[dict[str, Any], ...]:
    """The reply as one tool call; empty where it is not an object of a name and arguments."""
    try:
        value = json.loads(text)
    except ValueError:
        return ()
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        return ()
    return tool_calls({"id": "call-0", **value})


def _last_words(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    last = next((message.get("content") for message in reversed(messages) if message.get("role") == "user"), None)
    return re.findall(r"\w+", str(last or ""))


def _babble(messages: Sequence[Mapping[str, Any]], dice: random.Random) -> str:
    words = _last_words(messages)
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
