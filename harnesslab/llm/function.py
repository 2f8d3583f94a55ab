"""Any callable as a backbone: it takes chat messages and returns a reply in one of the usual forms."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from harnesslab.errors import BackboneError
from harnesslab.llm.aside import elsewhere
from harnesslab.llm.replies import to_completion
from harnesslab.llm.types import Backbone, Completion, Request

Ask: TypeAlias = Callable[..., Any]
"""From chat messages to a text, a chat message, a chat completion, or an awaitable of one."""

OPTIONS = ("tools", "temperature", "max_tokens", "seed")
"""Keyword arguments that a callable gets where it names them (or takes ``**options``), unless they are None."""


class FromCallable(Backbone):
    """Asks a callable. A plain function runs on a thread of its own, a coroutine function on a loop of its own."""

    def __init__(self, ask: Ask):
        self._ask = ask
        self._name = str(getattr(ask, "__qualname__", type(ask).__name__))
        self._takes = _options(ask)

    @property
    def identity(self) -> dict[str, Any]:
        """The callable's name, which is all that is known of it."""
        return {"kind": "callable", "model": self._name}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """What the callable says."""
        messages = [dict(message) for message in request.messages]
        options = {name: getattr(request, name) for name in self._takes if getattr(request, name) is not None}
        if "tools" in options:
            options["tools"] = [dict(tool) for tool in options["tools"]]
        started = time.perf_counter()
        if inspect.iscoroutinefunction(self._ask) or inspect.iscoroutinefunction(type(self._ask).__call__):
            answer = await elsewhere(_awaited(self._ask(messages, **options)))
        else:
            answer = await asyncio.to_thread(self._ask, messages, **options)
            if inspect.isawaitable(answer):
                answer = await elsewhere(_awaited(answer))
        body = {"model": self._name, "messages": messages, **options}
        return read_reply(answer, body, where=f"the callable {self._name}", seconds=time.perf_counter() - started)

    def close(self) -> None:
        """Holds nothing."""

    def __repr__(self) -> str:
        return self._name


def read_reply(answer: Any, body: Mapping[str, Any], *, where: str, seconds: float) -> Completion:
    """A text, a chat message, a chat completion or a Completion as a Completion. Raises BackboneError for anything else."""
    if isinstance(answer, Completion):
        return replace(answer, body=answer.body or body)
    if isinstance(answer, str):
        answer = {"choices": [{"message": {"role": "assistant", "content": answer}}]}
    elif callable(dump := getattr(answer, "model_dump", None)):
        answer = dump()
    if isinstance(answer, Mapping) and "choices" not in answer and ("content" in answer or "tool_calls" in answer):
        answer = {"choices": [{"message": answer}]}
    if not isinstance(answer, Mapping):
        message = f"{where} returned {type(answer).__name__}; return a text, a chat message or a chat completion"
        raise BackboneError(message, cause="broke")
    return to_completion(answer, body, seconds=seconds, where=where)


async def _awaited(answer: Any) -> Any:
    return await answer


def _options(ask: Ask) -> tuple[str, ...]:
    """Which of :data:`OPTIONS` the callable takes."""
    try:
        parameters = inspect.signature(ask).parameters.values()
    except (TypeError, ValueError):  # a built-in without a signature
        return ()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return OPTIONS
    named = {parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY}
    return tuple(name for name in OPTIONS if name in named)
