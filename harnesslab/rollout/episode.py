"""The trusted loop: it alone owns the environment, the budget, the reward and the record.

Interventions are asked through the pipeline and see a Context; whatever they return is data. An
exception in one is charged to the candidate (the episode counts as lost), an exception in the
environment is not (the episode is unscorable).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from harnesslab.errors import BackboneError, EnvironmentFault, HarnesslabError, InterventionFault
from harnesslab.harness.context import Action, Context, Decision, Proposal, Turn
from harnesslab.harness.pipeline import Pipeline
from harnesslab.llm.aside import ask
from harnesslab.llm.replies import tool_calls
from harnesslab.llm.types import Backbone, Completion, MinimalBackbone, Request
from harnesslab.llm.wrapper import as_backbone, shown
from harnesslab.plaintext import in_words
from harnesslab.rollout.control import tool_calls as possible_calls
from harnesslab.rollout.env import Task, TextEnv
from harnesslab.rollout.guard import GuardedEnv, Seen
from harnesslab.rollout.own import forced
from harnesslab.rollout.owners import owner_of
from harnesslab.rollout.records import Episode, Step

Spend = Callable[[Completion], None]
"""Told of every completion, as soon as it is there."""

NOTHING = Decision()
REPLY_SECONDS = 1800.0
"""Seconds that one reply of a backbone may take, its own retries included."""


def _anything(calls: int) -> None:
    """Nothing is limited."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long single calls may take, in seconds, and what is asked before each call of the backbone.

    ``deadline``: one call of the environment, by default the environment's own; ``reply``: one reply, retries
    included. ``allow`` takes a number of calls out of the budget and raises BudgetExceeded where they are not left;
    ``release`` says that they have ended.
    """

    deadline: float | None = None
    reply: float = REPLY_SECONDS
    allow: Callable[[int], None] = _anything
    release: Callable[[int], None] = _anything

    def remote(self) -> Limits:
        """The same for a worker elsewhere, which cannot ask."""
        return replace(self, allow=_anything, release=_anything)


async def play(
    env: TextEnv | GuardedEnv,
    task: Task,
    pipeline: Pipeline,
    backbone: MinimalBackbone,
    *,
    budget: int,
    repeat: int = 0,
    seed: int = 0,
    spend: Spend | None = None,
    limits: Limits | None = None,
) -> Episode:
    """Play one episode of at most ``budget`` steps and return its record, whoever failed in it.

    ``spend`` is called with every completion. Raises what only the user can put right: BackboneError for a key, a model
    or an address that is wrong, BudgetExceeded; see :data:`harnesslab.rollout.owners.RULES`.
    """
    started = time.perf_counter()
    limits = limits if limits is not None else Limits()
    guarded = env if isinstance(env, GuardedEnv) else GuardedEnv(env, None)
    episode = Episode(task_id=task.id, family=task.family, instruction="", repeat=repeat, seed=task.seed, budget=budget)
    try:
        seen = await guarded.reset(seed=task.seed, options=task.options)
        episode.instruction = seen.instruction
        episode.tools = tuple(str(tool.get("function", tool).get("name", "")) for tool in seen.tools or ())
        await _steps(guarded, seen, episode, pipeline, as_backbone(backbone), seed, spend, limits)
    except EnvironmentFault as fault:
        episode.fail(fault.cause, str(fault))
    except InterventionFault as fault:
        episode.fail("intervention", str(fault))
    except BackboneError as error:
        if owner_of(error.cause) == "user":
            raise
        episode.fail(error.cause, str(error))
    episode.length = len(episode.steps)
    episode.seconds = time.perf_counter() - started
    return episode


async def _steps(
    env: GuardedEnv,
    seen: Seen,
    episode: Episode,
    pipeline: Pipeline,
    backbone: Backbone,
    seed: int,
    spend: Spend | None,
    limits: Limits,
) -> None:
    """Observe, decide, act, until the goal, the end, a stop or the budget."""
    turns: tuple[Turn, ...] = ()
    observation = seen.observation
    # Only a control reads the options; a model is not made to wait for them.
    control = backbone.control
    protocol = pipeline.harness.protocol
    for index in range(episode.budget):
        begun = time.perf_counter()
        context = Context(
            instruction=seen.instruction,
            observation=observation,
            history=turns,
            admissible=seen.admissible,
            tools=seen.tools,
            step=index,
            budget=episode.budget,
            protocol=protocol,
        )
        ready = pipeline.begin(context, backbone.constrains)
        request = Request(
            messages=ready.messages,
            choices=ready.choices,
            tools=ready.tools,
            temperature=ready.draft.temperature,
            max_tokens=ready.draft.max_tokens,
            options=(ready.options or possible_calls(context)) if control else (),
            instruction=seen.instruction if control else "",
            past=tuple(turn.raw for turn in turns) if control else (),
        )
        key = (seed, episode.seed, episode.repeat, index)
        replies = await _ask(backbone, request, ready.draft.samples, key, spend, limits)
        chosen = pipeline.choose(context, replies)
        proposal = chosen.proposal
        fired = (*ready.fired, *(name for name in chosen.fired if name not in ready.fired))
        step = Step(
            index=index,
            observation=observation,
            request=replies[0].body or {"messages": list(ready.messages)},
            replies=[_reply(reply) for reply in replies],
            raw=proposal.raw,
            action=proposal.action,
            executed=False,
            problem=proposal.problem,
            result="",
            invalid=False,
            reward=0.0,
            fired=fired,
            admissible=seen.admissible,
            choices=len(ready.choices) if ready.choices else 0,
        )
        episode.steps.append(step)
        _count(episode, step, replies)
        done = await _act(env, context, step, proposal, chosen.decision or NOTHING, episode)
        step.seconds = time.perf_counter() - begun
        if done:
            return
        seen = env.seen
        observation = step.result
        turns = (*turns, Turn(step.observation, step.raw, step.action, step.result, step.invalid, fired))
    episode.reason = f"the budget of {episode.budget} steps was used up"


async def _act(
    env: GuardedEnv, context: Context, step: Step, proposal: Proposal, decision: Decision, episode: Episode
) -> bool:
    """Execute what was decided; fill the rest of the step; return whether the episode is over."""
    step.note = decision.note
    if decision.stop:
        step.result = decision.note
        episode.reason = "a regulation stopped the episode" + (f": {decision.note}" if decision.note else "")
        return True
    action: Action | None = decision.action if decision.action is not None else proposal.action
    step.action = action
    if decision.withhold or proposal.withheld or action is None:
        step.invalid = True
        step.result = decision.note if decision.withhold and decision.note else proposal.problem or decision.note
        episode.invalid += 1
        return False
    moved = await env.step(action)
    step.executed = True
    step.forced = forced(context, step.choices, proposal, decision.action, action)
    step.reward = moved.reward
    step.invalid = moved.invalid
    step.result = f"{moved.observation}\n{decision.note}" if decision.note else moved.observation
    episode.reward += moved.reward
    episode.invalid += moved.invalid
    episode.progress = max(episode.progress, moved.progress)
    if moved.solved:
        episode.solved, episode.progress = True, 1.0
    if moved.solved or moved.terminated or moved.truncated:
        episode.reason = (
            "solved"
            if moved.solved
            else "the environment ended the episode" + (" (truncated)" if moved.truncated else "")
        )
        return True
    return False


async def _ask(
    backbone: Backbone, request: Request, samples: int, key: tuple[int, ...], spend: Spend | None, limits: Limits
) -> list[Completion]:
    """Draw the samples, each with its own seed; all of them at once where there are several."""
    repeat = key[2]
    limits.allow(samples)
    try:
        draws = [_complete(backbone, _seeded(request, key, number), repeat, limits) for number in range(samples)]
        replies = [await draws[0]] if samples == 1 else list(await asyncio.gather(*draws))
        if spend is not None:
            for reply in replies:
                spend(reply)
        return replies
    finally:
        limits.release(samples)


async def _complete(backbone: Backbone, request: Request, repeat: int, limits: Limits) -> Completion:
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


def _reply(reply: Completion) -> dict[str, Any]:
    return {
        "text": reply.text,
        "tool_calls": list(reply.tool_calls),
        "model": reply.model,
        "finish_reason": reply.finish_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "seconds": reply.seconds,
        "cached": reply.cached,
    }


def _count(episode: Episode, step: Step, replies: list[Completion]) -> None:
    for name in step.fired:
        episode.fired[name] = episode.fired.get(name, 0) + 1
    for reply in replies:
        episode.prompt_tokens += reply.prompt_tokens
        episode.completion_tokens += reply.completion_tokens
