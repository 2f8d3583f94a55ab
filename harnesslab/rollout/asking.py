"""Asking a backbone: the limits on single calls, and one reply or several of them for a request."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from harnesslab.errors import BackboneError, HarnesslabError
from harnesslab.llm.aside import ask
from harnesslab.llm.replies import tool_calls
from harnesslab.llm.types import Completion, MinimalBackbone, Request
from harnesslab.llm.wrapper import shown
from harnesslab.plaintext import in_words

Spend = Callable[[Completion], None]
"""Called with every completion, as soon as it has arrived."""
REPLY_SECONDS = 1800.0
"""Seconds that one reply of a backbone may take, its own retries included."""


def _anything(calls: int) -> None:
    """Nothing is limited."""


def _nothing(completion: Completion) -> None:
    """Nothing is counted."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long single calls may take, in seconds, and what is asked before each call of the backbone.

    ``deadline``: one call of the environment, by default the environment's own; ``reply``: one reply, retries
    included. ``allow`` takes a number of calls out of the budget and raises BudgetExceeded where they are not left;
    ``release`` says that they have ended; ``spend`` is called with every completion.
    """

    deadline: float | None = None
    reply: float = REPLY_SECONDS
    allow: Callable[[int], None] = _anything
    release: Callable[[int], None] = _anything
    spend: Spend = _nothing

    def remote(self) -> Limits:
        """The same for a worker elsewhere, which cannot ask."""
        return replace(self, allow=_anything, release=_anything, spend=_nothing)


async def draw(
    backbone: MinimalBackbone, request: Request, samples: int, key: tuple[int, ...], *, limits: Limits, before: int = 0
) -> list[Completion]:
    """Draw replies, each with its own seed; all of them at once where there are several.

    ``key`` is the measurement's seed, the task's, the repeat and the step; ``before`` counts the replies that the step
    has had. Raises BackboneError and BudgetExceeded.
    """
    limits.allow(samples)
    try:
        draws = [
            complete(backbone, _seeded(request, key, number), key[2], limits)
            for number in range(before, before + samples)
        ]
        replies = [await draws[0]] if samples == 1 else list(await asyncio.gather(*draws))
        for reply in replies:
            limits.spend(reply)
        return replies
    finally:
        limits.release(samples)


async def complete(backbone: MinimalBackbone, request: Request, repeat: int, limits: Limits) -> Completion:
    """One reply. Whatever the backbone does wrong becomes one BackboneError."""
    try:
        async with asyncio.timeout(limits.reply):
            reply = await ask(backbone, request, repeat)
    except HarnesslabError:
        raise
    except TimeoutError as error:
        message = f"the backbone {shown(backbone):.80} did not reply within {limits.reply:g} s"
        raise BackboneError(message, cause="timeout") from error
    except Exception as error:
        message = f"the backbone {shown(backbone):.80} raised {in_words(error)}"
        raise BackboneError(message, cause="broke") from error
    if not isinstance(reply, Completion) or not isinstance(reply.text, str):
        message = f"the backbone {shown(backbone):.80} returned {type(reply).__name__}; complete() must return a Completion with text"
        raise BackboneError(message, cause="broke")
    return replace(reply, tool_calls=tool_calls(reply.tool_calls)) if reply.tool_calls else reply


def _seeded(request: Request, key: tuple[int, ...], number: int) -> Request:
    """The request with the seed of this very draw; the same draw gets the same seed in every run."""
    digest = hashlib.blake2b(repr((*key, number)).encode(), digest_size=4).digest()
    return replace(request, seed=int.from_bytes(digest, "big") >> 1)
