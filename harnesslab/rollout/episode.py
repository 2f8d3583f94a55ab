"""The trusted loop: it alone owns the environment, the budget, the reward and the record.

Interventions are asked through the pipeline and see a Context; whatever they return is data. An
exception in one is charged to the candidate (the episode counts as lost), an exception in the
environment is not (the episode is unscorable).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harnesslab.errors import BackboneError, EnvironmentFault, InterventionFault
from harnesslab.harness.pipeline import Pipeline
from harnesslab.llm.types import Completion, MinimalBackbone
from harnesslab.rollout.agent import Agent, AgentRun
from harnesslab.rollout.asking import REPLY_SECONDS as REPLY_SECONDS
from harnesslab.rollout.asking import Limits as Limits
from harnesslab.rollout.asking import Spend as Spend
from harnesslab.rollout.env import Task, TextEnv
from harnesslab.rollout.foreign import Conversation
from harnesslab.rollout.guard import GuardedEnv, Seen
from harnesslab.rollout.move import Move
from harnesslab.rollout.own import forced
from harnesslab.rollout.owners import owner_of
from harnesslab.rollout.records import Episode, Step

__all__ = ["REPLY_SECONDS", "Limits", "Spend", "play"]


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
    limits = limits if spend is None else replace(limits, spend=spend)
    guarded = env if isinstance(env, GuardedEnv) else GuardedEnv(env, None)
    episode = Episode(task_id=task.id, family=task.family, instruction="", repeat=repeat, seed=task.seed, budget=budget)
    own = pipeline.episode()
    try:
        seen = await guarded.reset(seed=task.seed, options=task.options)
        episode.instruction = seen.instruction
        episode.tools = tuple(str(tool.get("function", tool).get("name", "")) for tool in seen.tools or ())
        await _steps(guarded, seen, episode, Agent(own, backbone, limits=limits), seed)
    except EnvironmentFault as fault:
        episode.fail(fault.cause, str(fault))
    except InterventionFault as fault:
        episode.fail(fault.cause, str(fault))
    except BackboneError as error:
        if owner_of(error.cause) == "user":
            raise
        episode.fail(error.cause, str(error))
    finally:
        own.close()
    episode.length = len(episode.steps)
    episode.invalid = sum(step.invalid for step in episode.steps)
    episode.seconds = time.perf_counter() - started
    return episode


async def _steps(env: GuardedEnv, seen: Seen, episode: Episode, agent: Agent, seed: int) -> None:
    """Observe, decide, act, until the goal, the end, a stop or the budget."""
    run = agent.start(seen.instruction, budget=episode.budget, seed=(seed, episode.seed), repeat=episode.repeat)
    observation = seen.observation
    while not run.done:
        begun = time.perf_counter()
        run.tools, run.admissible = env.seen.tools, env.seen.admissible
        if env.seen.request is not None:
            run.conversation = run.conversation or Conversation()
            run.conversation.receive(env.seen.request["messages"], env.seen.request.get("tools"))
        move = await run.decide(observation)
        step = _step(move)
        episode.steps.append(step)
        _count(episode, step, move.replies)
        ended = move.executes and await _execute(env, run, move, step, episode)
        step.seconds = time.perf_counter() - begun
        if ended:
            return
        observation = step.result
    episode.reason = run.reason


def _step(move: Move) -> Step:
    """The record of a move; what its action came to is filled in when the environment has answered."""
    return Step(
        index=move.context.step,
        observation=move.context.observation,
        request=(move.replies[0].body if move.replies else None) or {"messages": list(move.ready.messages)},
        replies=_replies(move),
        raw=move.proposal.raw,
        action=move.action,
        executed=False,
        problem=move.proposal.problem,
        result=move.result,
        invalid=move.invalid,
        reward=0.0,
        fired=move.fired,
        note=move.decision.note,
        admissible=move.context.admissible,
        choices=move.choices,
        seen=move.seen if move.seen != move.context.observation else "",
    )


async def _execute(env: GuardedEnv, run: AgentRun, move: Move, step: Step, episode: Episode) -> bool:
    """Execute the action; fill the rest of the step; return whether the episode is over."""
    assert move.action is not None and move.sent is not None
    moved = await env.step(move.sent)
    step.executed = True
    if move.outcome is not None and len(move.outcome.calls) > 1:
        step.forced = move.outcome.changed
    else:
        step.forced = forced(move.context, step.choices, move.proposal, move.decision.action, move.action)
    step.reward = moved.reward
    step.invalid = moved.invalid
    step.result = run.settle(moved.observation, moved.invalid)
    episode.reward += moved.reward
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


def _replies(move: Move) -> list[dict[str, Any]]:
    """The replies; each that was not the last word has the text with which the model was asked again."""
    found = [_reply(reply) for reply in move.replies]
    start = 0
    for number, text in move.again:
        for reply in found[start:number]:
            reply["again"] = text
        start = number
    return found


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


def _count(episode: Episode, step: Step, replies: Sequence[Completion]) -> None:
    for name in step.fired:
        episode.fired[name] = episode.fired.get(name, 0) + 1
    for reply in replies:
        episode.prompt_tokens += reply.prompt_tokens
        episode.completion_tokens += reply.completion_tokens
