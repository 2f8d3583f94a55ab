"""One label for one failed episode: its earliest bottleneck.

The four labels and the order in which they are checked follow Life-Harness (arXiv 2605.22166):

1. *action realization*: the model's reply never became an action, or only just missed one;
2. *contract mismatch*: a well-formed action that the environment does not accept;
3. *trajectory degeneration*: accepted actions that lead nowhere: loops, no news, a spent budget, a rash finish;
4. *residual reasoning*: everything was accepted and moved on, and the result was still wrong.

A label holds when it cost the episode at least a :data:`SHARE` of its steps, so that one slip in a long
episode does not hide what really went wrong. Only the record is read, so the same code serves every environment.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rapidfuzz import fuzz, process

from harnesslab.harness.context import CUT
from harnesslab.harness.protocol import AMBIGUOUS as _SEVERAL
from harnesslab.harness.toolschema import function
from harnesslab.plaintext import clip
from harnesslab.rollout.env import Action
from harnesslab.rollout.owners import CHARGED
from harnesslab.rollout.records import Episode, Step

Label = Literal["action realization", "contract mismatch", "trajectory degeneration", "residual reasoning"]
ACTION: Label = "action realization"
CONTRACT: Label = "contract mismatch"
TRAJECTORY: Label = "trajectory degeneration"
REASONING: Label = "residual reasoning"
LABELS: tuple[Label, ...] = (ACTION, CONTRACT, TRAJECTORY, REASONING)
"""In the order in which they are checked."""

SHARE = 0.25
"""Share of an episode's steps that a cause must have cost to count as the bottleneck."""
NEAR = 80.0
"""Similarity (0 to 100) from which a refused action counts as a slip in the form of an admissible one."""
STALE = 4
"""Steps in a row without a new observation that count as standing still."""

_ERROR = re.compile(
    r"\b(?:error|exception|traceback|invalid|unknown|unrecogni[sz]ed|not (?:possible|found|allowed|recogni[sz]ed)|"
    r"no such|cannot|can't|failed|denied)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What went wrong first in one failed episode.

    ``cause`` is a short phrase that clusters share, ``step`` the index of the earliest step that went wrong,
    ``steps`` all steps that the cause cost, ``reason`` one line for a person (untrusted text inside: escape it).
    ``signature`` tells causes of one kind apart: the environment's message with the task's own words masked.
    """

    label: Label
    cause: str
    step: int
    reason: str
    steps: tuple[int, ...] = ()
    signature: str = ""


def diagnose(episode: Episode) -> Diagnosis:
    """Label one failed episode. An episode without steps is residual reasoning: nothing is known of it."""
    steps = episode.steps
    if not steps:
        return Diagnosis(REASONING, "no step was made", 0, episode.reason or "no step was made")
    if episode.owner == "harness":
        if episode.cause not in CHARGED.values():
            reason = f"an intervention of the harness failed: {clip(episode.reason)}"
            return _diagnosis(ACTION, "an intervention failed", [steps[-1]], reason)
        return _diagnosis(ACTION, "the request was refused", [steps[-1]], clip(episode.reason))
    needed = max(1, math.ceil(SHARE * len(steps)))
    for check in (_unread, _parallel, _near_miss, _refused, _withheld, _loop, _stale, _rash_finish, _out_of_budget):
        found = check(episode)
        if found is not None and (len(found.steps) >= needed or found.cause in _WHOLE):
            return found
    last = steps[-1]
    return Diagnosis(
        REASONING,
        "accepted, but wrong",
        last.index,
        f"every step was accepted; the last one was {clip(action_text(last.action))}",
        (last.index,),
    )


def action_text(action: Action | None) -> str:
    """An action as one line: text as it is, a tool call as ``name {arguments}``, nothing as an empty string."""
    if action is None:
        return ""
    if isinstance(action, str):
        return action
    return f"{action.get('name', '')} {json.dumps(action.get('arguments', {}), ensure_ascii=False, sort_keys=True)}"


def is_error(step: Step) -> bool:
    """Whether the environment turned the action down: it said so, or the head of its answer reads like an error."""
    return step.executed and (step.invalid or bool(_ERROR.search(step.result.strip()[:80])))


def bare_result(step: Step) -> str:
    """What came back of the step, without the note that a regulation put at its end."""
    return step.result.removesuffix(step.note).rstrip("\n") if step.note else step.result


def observations(episode: Episode) -> list[str]:
    """What each step started from, without the notes of regulations: equal states look equal."""
    return [step.observation for step in episode.steps[:1]] + [bare_result(step) for step in episode.steps[:-1]]


def nearest(text: str, options: Sequence[str]) -> tuple[str, float]:
    """The option most like ``text`` and its similarity from 0 to 100; ``("", 0.0)`` without options."""
    found = process.extractOne(text, options, scorer=fuzz.ratio) if text and options else None
    return (found[0], float(found[1])) if found else ("", 0.0)


def signature(message: str, *own: str) -> str:
    """The pattern of a message: its first line without quotes, numbers and the words of ``own`` texts."""
    words = {word.casefold() for text in own for word in re.findall(r"\w+", text)}
    line = message.strip().split("\n", 1)[0][:200]
    line = _NUMBER.sub("N", _QUOTED.sub("…", line))
    masked = re.sub(r"\w+", lambda match: "…" if match.group().casefold() in words else match.group(), line)
    return re.sub(r"…(?:[\s._-]*…)+", "…", masked).strip()


def _unread(episode: Episode) -> Diagnosis | None:
    bad = [step for step in episode.steps if step.action is None and not step.executed]
    if not bad:
        return None
    causes = [unread_cause(step) for step in bad]
    cause = max(dict.fromkeys(causes), key=causes.count)
    first = bad[causes.index(cause)]
    said = clip(first.raw) or "an empty reply"
    reason = {
        TRUNCATED: f"the token limit cut the reply off before it gave an action ({said}); raise max_tokens{_limit(first)}",
        CUT_OFF: f"the endpoint ended the reply before it gave an action "
        f"({chosen_reply(first).get('finish_reason')}): {said}",
        AMBIGUOUS: f"several different actions in one reply, so none was executed: {said}",
    }.get(cause, f"no action could be read from {said}")
    return _diagnosis(ACTION, cause, bad, reason)


UNREAD = "no action in the reply"
TRUNCATED = "truncated"
CUT_OFF = "cut off by the endpoint"
AMBIGUOUS = "several actions in one reply"
PARALLEL = "parallel calls, only the first was executed"


def unread_cause(step: Step) -> str:
    """Why no action could be read in a step: UNREAD, TRUNCATED, CUT_OFF or AMBIGUOUS."""
    if step.problem.startswith(_SEVERAL):
        return AMBIGUOUS
    reason = chosen_reply(step).get("finish_reason")
    return TRUNCATED if reason == "length" else CUT_OFF if reason in CUT else UNREAD


def chosen_reply(step: Step) -> Mapping[str, Any]:
    """The reply that counted, as it is recorded; empty where none was kept."""
    named = (reply for reply in step.replies if reply.get("text") == step.raw)
    return next(named, step.replies[0] if step.replies else {})


def calls_left_out(step: Step) -> list[Mapping[str, Any]]:
    """The native calls of the reply that were not executed, because one action is one step; equal ones do not count."""
    calls = list(chosen_reply(step).get("tool_calls") or ())
    first = [function(call) for call in calls[:1]]
    return [call for call in calls[1:] if [function(call).get(k) for k in _CALL] != [first[0].get(k) for k in _CALL]]


_CALL = ("name", "arguments")


def _limit(step: Step) -> str:
    limit = step.request.get("max_completion_tokens") or step.request.get("max_tokens")
    return f" (it was {limit})" if limit else ""


def _parallel(episode: Episode) -> Diagnosis | None:
    bad = [step for step in episode.steps if calls_left_out(step)]
    if not bad:
        return None
    names = ", ".join(str(function(call).get("name"))[:40] for call in calls_left_out(bad[0])[:4])
    return _diagnosis(ACTION, PARALLEL, bad, f"the reply called several tools at once; not executed: {clip(names)}")


def _near_miss(episode: Episode) -> Diagnosis | None:
    bad = []
    for step in episode.steps:
        if is_error(step) and step.admissible and nearest(action_text(step.action), step.admissible)[1] >= NEAR:
            bad.append(step)
    if not bad:
        return None
    text = action_text(bad[0].action)
    reason = f"{clip(text)} is almost {clip(nearest(text, bad[0].admissible or ())[0])}"
    return _diagnosis(ACTION, "almost an admissible action", bad, reason)


def _refused(episode: Episode) -> Diagnosis | None:
    bad = [step for step in episode.steps if is_error(step)]
    if not bad:
        return None
    first = bad[0]
    reason = f"{clip(action_text(first.action), 60)} was answered with {clip(first.result)}"
    pattern = signature(first.result, action_text(first.action), episode.instruction)
    return _diagnosis(CONTRACT, "refused by the environment", bad, reason, pattern)


def _withheld(episode: Episode) -> Diagnosis | None:
    # A valid step that the environment did not get is a call of the harness's own tool, or the last one, which was stopped.
    stopped = episode.steps[-1:] if not episode.steps[-1].invalid and "regulation stopped" in episode.reason else []
    bad = [s for s in episode.steps if not s.executed and s.action is not None and (s.invalid or s in stopped)]
    if not bad:
        return None
    reason = (
        f"{clip(action_text(bad[0].action), 60)} was withheld by the harness: {clip(bad[0].problem or bad[0].note)}"
    )
    return _diagnosis(TRAJECTORY, "withheld again and again", bad, reason)


def _loop(episode: Episode) -> Diagnosis | None:
    seen: set[tuple[str, str]] = set()
    bad = []
    for observation, step in zip(observations(episode), episode.steps, strict=True):
        pair = (observation, action_text(step.action))
        if pair in seen:
            bad.append(step)
        seen.add(pair)
    if not bad:
        return None
    reason = f"{clip(action_text(bad[0].action))} was repeated on the same observation"
    return _diagnosis(TRAJECTORY, "repeated itself", bad, reason)


def _stale(episode: Episode) -> Diagnosis | None:
    seen: set[str] = {episode.steps[0].observation}
    bad: list[Step] = []
    streak: list[Step] = []
    for step in episode.steps:
        news = bare_result(step)
        streak = [*streak, step] if news in seen else []
        seen.add(news)
        if len(streak) >= STALE:
            bad.extend(item for item in streak if item not in bad)
    if not bad:
        return None
    reason = f"nothing new was seen in {len(bad)} steps from step {bad[0].index} on"
    return _diagnosis(TRAJECTORY, "nothing new was seen", bad, reason)


def _rash_finish(episode: Episode) -> Diagnosis | None:
    last = episode.steps[-1]
    if not ended_itself(episode) or not last.executed:
        return None
    if len(episode.steps) == 1:
        reason = f"the first action, {clip(action_text(last.action))}, ended the episode"
        return _diagnosis(TRAJECTORY, "finished at once", [last], reason)
    before = episode.steps[-2]
    if is_error(before):
        reason = f"{clip(action_text(last.action))} ended the episode right after an error"
        return _diagnosis(TRAJECTORY, "finished after an error", [last], reason)
    return None


def _out_of_budget(episode: Episode) -> Diagnosis | None:
    if ended_itself(episode):
        return None
    reason = f"all {len(episode.steps)} steps were used up; progress {episode.progress:.0%}"
    return _diagnosis(TRAJECTORY, "ran out of steps", [episode.steps[-1]], reason)


_WHOLE = frozenset({"finished at once", "finished after an error", "ran out of steps"})
"""Causes that concern the end of an episode: one step is enough."""


def ended_itself(episode: Episode) -> bool:
    """Whether the episode ended before its budget was spent: the agent or the environment ended it."""
    return len(episode.steps) < episode.budget


def _diagnosis(label: Label, cause: str, steps: Sequence[Step], reason: str, pattern: str = "") -> Diagnosis:
    return Diagnosis(label, cause, steps[0].index, reason, tuple(step.index for step in steps), pattern)
