"""One run of an agent on a thread of its own: it asks, and whoever plays the episode answers."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harnesslab.bridges.dialects import Dialect
from harnesslab.bridges.redirect import Hung, Line
from harnesslab.errors import EnvironmentFault
from harnesslab.llm.types import Completion
from harnesslab.rollout.foreign import Message, Outcome, text_of


@dataclass(slots=True)
class Asked:
    """A request of the agent, and where its reply goes."""

    dialect: Dialect
    body: Mapping[str, Any]
    messages: list[Message]
    tools: list[dict[str, Any]]
    reply: queue.SimpleQueue[Message | None]


@dataclass(slots=True)
class Ended:
    """The agent is through: what it returned, or what it raised."""

    output: Any = None
    error: BaseException | None = None


class Call:
    """One run of the agent. Its thread asks; the environment's thread answers."""

    def __init__(self, play: Callable[[Any, Line], Any], task: Any):
        self._inbox: queue.SimpleQueue[Asked | Ended] = queue.SimpleQueue()
        self._over = threading.Event()
        self._open: Asked | None = None
        self._waiting: list[Asked] = []
        self._lock = threading.Lock()

        def work() -> None:
            try:
                self._inbox.put(Ended(play(task, self)))
            except BaseException as error:  # noqa: BLE001 - the agent's own; the episode says so
                self._inbox.put(Ended(error=error))

        context = contextvars.copy_context()
        threading.Thread(target=lambda: context.run(work), name="harnesslab-agent", daemon=True).start()

    def ask(self, dialect: Dialect, body: Mapping[str, Any]) -> dict[str, Any]:
        """Called on the agent's threads."""
        messages, tools = dialect.read(body)
        request = Asked(dialect, body, messages, tools, queue.SimpleQueue())
        with self._lock:
            if self._over.is_set():
                raise Hung("the episode is over")
            self._waiting.append(request)
        self._inbox.put(request)
        message = request.reply.get()
        if message is None:
            raise Hung("the episode is over")
        return _raw(dialect, body, message)

    def next(self, seconds: float) -> Asked | Ended:
        """The agent's next request, or its end. Raises EnvironmentFault where neither comes in time."""
        try:
            found = self._inbox.get(timeout=seconds)
        except queue.Empty:
            raise EnvironmentFault(f"the agent did not ask its model or finish within {seconds:g} s", cause="hang") from None  # fmt: skip
        self._open = found if isinstance(found, Asked) else None
        return found

    def answer(self, message: Message) -> None:
        """Give the agent its reply."""
        assert self._open is not None
        with self._lock:
            self._waiting.remove(self._open)
        self._open.reply.put(message)
        self._open = None

    def hang_up(self) -> None:
        """End it: requests that wait, and all that come later, fail."""
        with self._lock:
            self._over.set()
            waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.reply.put(None)


def _raw(dialect: Dialect, body: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """The message as a reply in the API that the agent speaks."""
    calls = tuple(
        {"id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in message.get("tool_calls") or ()
    )
    text = text_of(message)
    return dialect.reply(
        dialect.blank(str(body.get("model") or "harnesslab")), Outcome(Completion(text, calls), text, calls)
    )
