"""A thin guard around an environment: checks what it returns, bounds how long it takes, and names it when it breaks.

Nothing that an environment does may end a run. Whatever goes wrong in make, reset or step becomes one
:class:`~harnesslab.errors.EnvironmentFault`. Environments that block (child processes) declare
``threaded = True``, keep their own deadlines, and are called on a worker thread each, so that other episodes go on.
All others live on one thread; see :mod:`harnesslab.rollout.calls`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable, HarnesslabError
from harnesslab.harness.toolschema import checked
from harnesslab.plaintext import in_words
from harnesslab.redaction import scrub_head
from harnesslab.rollout.calls import CALLS, Overran
from harnesslab.rollout.env import Action, Environment, TextEnv

THREADS = 64
"""Environments in processes that can be waited for at once. asyncio's own threads are as few as the cores."""
DEADLINE = 300.0
"""Seconds that one call of an environment may take, unless it or the settings say otherwise."""
CLOSE_SECONDS = 5.0
"""The same for close, which nothing waits for."""
OBSERVATION_LIMIT = 20_000
"""Characters of an observation that are kept; the rest is cut with a mark."""
INSTRUCTION_LIMIT = 60_000
"""The same for an instruction, which is told once and may hold a policy of many pages."""

# Threads are started as they are needed, and wait for work without cost.
_THREADS = ThreadPoolExecutor(THREADS, thread_name_prefix="harnesslab-env")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the agent may see now."""

    observation: str
    instruction: str
    admissible: tuple[str, ...] | None
    tools: tuple[dict[str, Any], ...] | None
    request: Mapping[str, Any] | None = None
    """The request of somebody else's agent, which owns its prompt: chat ``messages``, and ``tools`` where it has some."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What one step brought; the last four are for the trusted loop only."""

    observation: str
    invalid: bool
    terminated: bool
    truncated: bool
    reward: float
    solved: bool
    progress: float


def deadline_of(environment: Environment, given: float | None = None) -> float:
    """Seconds for one call: what is given, else the environment's own ``deadline``, else :data:`DEADLINE`."""
    seconds = given if given is not None else getattr(environment, "deadline", None)
    if seconds is None:
        return DEADLINE
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ConfigError(f"the deadline of '{environment.name}' is {seconds!r}; give a number of seconds above 0")
    return float(seconds)


class GuardedEnv:
    """One environment instance under guard; ``seen`` is what the agent may see at present.

    Make one with :meth:`make`. Around an instance that exists already, calls run where they are awaited, without a
    deadline.
    """

    def __init__(self, env: TextEnv, deadline: float | None = None):
        self._env = env
        self._deadline = deadline
        self._threaded = bool(getattr(env, "threaded", False))
        self._stuck = False
        self.seen = Seen("", "", None, None)

    @classmethod
    async def make(cls, environment: Environment, deadline: float | None = None) -> GuardedEnv:
        """A new instance, made on the thread on which it will live. Raises EnvironmentFault."""
        seconds = deadline_of(environment, deadline)
        return cls(await bounded("make", environment.make, seconds), seconds)

    async def close(self) -> None:
        """Close the instance; one that breaks or hangs while closing has nothing left to lose."""
        close = getattr(self._env, "close", None)
        if not callable(close) or self._stuck:
            return
        with contextlib.suppress(Exception):
            if self._threaded or self._deadline is None:
                close()
            else:
                await bounded("close", close, min(CLOSE_SECONDS, self._deadline))

    async def reset(self, *, seed: int, options: Mapping[str, Any]) -> Seen:
        """Start an episode. Raises EnvironmentFault."""
        result = await self._call("reset", lambda: self._env.reset(seed=seed, options=options))
        observation, info = self._unpack("reset", result, 2)
        public = self._public("reset", info)
        self.seen = Seen(
            observed(observation),
            observed(public.get("instruction", ""), INSTRUCTION_LIMIT) or observed(observation),
            _admissible(public),
            _tools(public),
            _request(public),
        )
        return self.seen

    async def step(self, action: Action) -> Moved:
        """Do one action. Raises EnvironmentFault."""
        result = await self._call("step", lambda: self._env.step(action))
        observation, reward, terminated, truncated, info = self._unpack("step", result, 5)
        public = self._public("step", info)
        private = info.get("private", {})
        if not isinstance(private, Mapping) or not isinstance(private.get("solved"), bool):
            raise _lie(
                "the environment's step did not say in info['private']['solved'] (bool) whether the goal is reached"
            )
        try:
            moved = Moved(
                observation=observed(observation),
                invalid=bool(public.get("invalid", False)),
                terminated=_flag("terminated", terminated),
                truncated=_flag("truncated", truncated),
                reward=_number(reward),
                solved=private["solved"],
                progress=min(1.0, max(0.0, _number(private.get("progress", private["solved"])))),
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise _lie(f"the environment's step returned a reward or progress that is not a number: {error}") from error
        # Tools rarely change within an episode: a step that does not repeat them keeps those of the reset.
        self.seen = Seen(
            moved.observation,
            self.seen.instruction,
            _admissible(public),
            _tools(public) if "tools" in public else self.seen.tools,
            _request(public),
        )
        return moved

    async def _call(self, what: str, call: Callable[[], Any]) -> Any:
        if self._threaded:
            with _named(what):
                return await asyncio.get_running_loop().run_in_executor(_THREADS, call)
        if self._deadline is None:
            with _named(what):
                return call()
        try:
            return await bounded(what, call, self._deadline)
        except EnvironmentFault as fault:
            self._stuck = fault.cause == "hang"
            raise

    @staticmethod
    def _unpack(what: str, result: Any, size: int) -> tuple[Any, ...]:
        if not isinstance(result, (tuple, list)) or len(result) != size:
            raise _lie(f"the environment's {what} must return {size} values, Gymnasium's signature")
        return tuple(result)

    @staticmethod
    def _public(what: str, info: Any) -> Mapping[str, Any]:
        if not isinstance(info, Mapping) or not isinstance(info.get("public", {}), Mapping):
            raise _lie(f"the environment's {what} must return info with the parts 'public' and 'private'")
        public = info.get("public", {})
        assert isinstance(public, Mapping)
        return public


async def bounded(what: str, call: Callable[[], Any], seconds: float) -> Any:
    """The call on the thread of in-process environments. Raises EnvironmentFault."""
    with _named(what):
        try:
            return await CALLS.run(call, seconds)
        except Overran:
            message = f"the environment's {what} did not return within {seconds:g} s"
            raise EnvironmentFault(message, cause="hang") from None


@contextlib.contextmanager
def _named(what: str) -> Iterator[None]:
    """Whatever the environment raises becomes an EnvironmentFault that says which call it was."""
    try:
        yield
    except (EnvironmentFault, EnvironmentUnavailable, asyncio.CancelledError):
        raise
    except HarnesslabError as error:
        raise EnvironmentFault(f"the environment's {what} failed: {error}") from error
    except (Exception, SystemExit) as error:
        raise EnvironmentFault(f"the environment's {what} raised {in_words(error)}") from error


def _lie(message: str) -> EnvironmentFault:
    return EnvironmentFault(message, cause="lie")


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, str | bytes):
        raise _lie(f"the environment's step returned {value[:40]!r} for {name}; return True or False")
    return bool(value)


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not finite")
    return number


def clean(text: str) -> str:
    """Text that can be written as UTF-8, to the store and to a model: lone surrogates are replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def observed(observation: Any, limit: int = OBSERVATION_LIMIT) -> str:
    """What an agent is shown of a value from outside: its text, writable as UTF-8, without known secrets, cut with a mark."""
    try:
        text = clean(observation if isinstance(observation, str) else str(observation))
    except Exception as error:
        raise _lie(
            f"the environment returned a {type(observation).__name__} that has no text: {in_words(error)}"
        ) from error
    cut = f"\n[{len(text) - limit} characters cut]" if len(text) > limit else ""
    return scrub_head(text, limit) + cut


def _admissible(public: Mapping[str, Any]) -> tuple[str, ...] | None:
    actions = public.get("admissible")
    if actions is None:
        return None
    if not isinstance(actions, list | tuple):
        raise _lie(f"the environment's info['public']['admissible'] is a {type(actions).__name__}, not a list")
    return tuple(observed(action) for action in actions)


def _request(public: Mapping[str, Any]) -> Mapping[str, Any] | None:
    request = public.get("request")
    if request is None:
        return None
    messages = request.get("messages") if isinstance(request, Mapping) else None
    if not isinstance(messages, list | tuple) or not all(isinstance(message, Mapping) for message in messages):
        raise _lie("the environment's info['public']['request'] must hold a list of chat messages")
    return {"messages": tuple(messages), "tools": _tools(request)}


def _tools(public: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    tools = public.get("tools")
    if tools is None:
        return None
    try:
        return checked(tools)
    except ValueError as error:
        raise _lie(f"the environment's info['public']['tools'] cannot be used: {error}") from error
