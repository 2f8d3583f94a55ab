"""A thin guard around an environment: checks what it returns and names it when it breaks.

Nothing that an environment does may end a run. Whatever goes wrong in reset or step becomes one
:class:`~harnesslab.errors.EnvironmentFault`. Environments that block (child processes) declare
``threaded = True``, and are called on a worker thread so that other episodes go on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.env import Action, TextEnv

THREADS = 64
"""Environments in processes that can be waited for at once. asyncio's own threads are as few as the cores."""
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


class GuardedEnv:
    """One environment instance under guard; ``seen`` is what the agent may see at present."""

    def __init__(self, env: TextEnv):
        self._env = env
        self._threaded = bool(getattr(env, "threaded", False))
        self.seen = Seen("", "", None, None)

    async def reset(self, *, seed: int, options: Mapping[str, Any]) -> Seen:
        """Start an episode. Raises EnvironmentFault."""
        result = await self._call("reset", lambda: self._env.reset(seed=seed, options=options))
        observation, info = self._unpack("reset", result, 2)
        public = self._public("reset", info)
        self.seen = Seen(
            _text(observation),
            _text(public.get("instruction", ""), INSTRUCTION_LIMIT) or _text(observation),
            _admissible(public),
            _tools(public),
        )
        return self.seen

    async def step(self, action: Action) -> Moved:
        """Do one action. Raises EnvironmentFault."""
        result = await self._call("step", lambda: self._env.step(action))
        observation, reward, terminated, truncated, info = self._unpack("step", result, 5)
        public = self._public("step", info)
        private = info.get("private", {})
        if not isinstance(private, Mapping) or not isinstance(private.get("solved"), bool):
            raise EnvironmentFault(
                "the environment's step did not say in info['private']['solved'] (bool) if the goal is reached"
            )
        try:
            moved = Moved(
                observation=_text(observation),
                invalid=bool(public.get("invalid", False)),
                terminated=bool(terminated),
                truncated=bool(truncated),
                reward=_number(reward),
                solved=private["solved"],
                progress=min(1.0, max(0.0, _number(private.get("progress", private["solved"])))),
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise EnvironmentFault(
                f"the environment's step returned a reward or progress that is no number: {error}"
            ) from error
        # Tools rarely change within an episode: a step that does not repeat them keeps those of the reset.
        self.seen = Seen(
            moved.observation,
            self.seen.instruction,
            _admissible(public),
            _tools(public) if "tools" in public else self.seen.tools,
        )
        return moved

    async def _call(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            if self._threaded:
                return await asyncio.get_running_loop().run_in_executor(_THREADS, call)
            return call()
        except EnvironmentFault:
            raise
        except (Exception, SystemExit) as error:
            raise EnvironmentFault(
                f"the environment's {what} raised {type(error).__name__}: {str(error)[:500]}"
            ) from error

    @staticmethod
    def _unpack(what: str, result: Any, size: int) -> tuple[Any, ...]:
        if not isinstance(result, (tuple, list)) or len(result) != size:
            raise EnvironmentFault(f"the environment's {what} must return {size} values, Gymnasium's signature")
        return tuple(result)

    @staticmethod
    def _public(what: str, info: Any) -> Mapping[str, Any]:
        if not isinstance(info, Mapping) or not isinstance(info.get("public", {}), Mapping):
            raise EnvironmentFault(f"the environment's {what} must return info with the parts 'public' and 'private'")
        public = info.get("public", {})
        assert isinstance(public, Mapping)
        return public


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not finite")
    return number


def _text(observation: Any, limit: int = OBSERVATION_LIMIT) -> str:
    text = observation if isinstance(observation, str) else str(observation)
    # Lone surrogates cannot be written as UTF-8, neither to the store nor to a model.
    text = text if text.isascii() else text.encode("utf-8", "replace").decode()
    if len(text) > limit:
        return text[:limit] + f"\n[{len(text) - limit} characters cut]"
    return text


def _admissible(public: Mapping[str, Any]) -> tuple[str, ...] | None:
    actions = public.get("admissible")
    if actions is None:
        return None
    if not isinstance(actions, list | tuple):
        raise EnvironmentFault(f"the environment's info['public']['admissible'] is a {type(actions).__name__}, no list")
    return tuple(_text(action) for action in actions)


def _tools(public: Mapping[str, Any]) -> tuple[dict[str, Any], ...] | None:
    tools = public.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list | tuple) or not all(map(_is_schema, tools)):
        raise EnvironmentFault("the environment's info['public']['tools'] is no list of function schemas with names")
    return tuple(dict(tool) for tool in tools)


def _is_schema(tool: Any) -> bool:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)
