"""One step, and one episode, as static HTML: what was seen, asked, answered, done, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesslab.panels.markup import block, plain_json, section, text
from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import Diagnosis, action_text

SAMPLES = 8
"""Replies of one step that are shown in full; the rest is counted."""
CHOICES = 60
"""Choices of one request that are listed."""
_PARAMETERS = ("model", "temperature", "max_tokens", "seed", "top_p", "cache_prompt")


def episode_html(episode: Episode, diagnosis: Diagnosis | None = None) -> str:
    """The head of an episode: task, outcome, numbers, and the diagnosis."""
    outcome = "solved" if episode.solved else "failed" if episode.status == "finished" else "unscorable"
    numbers = (
        f"{episode.length} of {episode.budget} steps, {episode.invalid} invalid, progress {episode.progress:.0%}, "
        f"{episode.prompt_tokens + episode.completion_tokens} tokens, {episode.seconds:.1f} s"
    )
    why = ""
    if diagnosis is not None:
        why = (
            f"<p class='hl-mark'>Earliest bottleneck: {text(diagnosis.label)}, step {diagnosis.step}. "
            f"{text(diagnosis.reason, 300)}</p>"
        )
    return (
        f"<p><b>{text(episode.task_id)}</b> ({text(episode.family)}) {outcome}: {text(episode.reason, 300)}. {numbers}.</p>"
        f"<p>Task: {text(episode.instruction, 1000)}</p>{why}"
    )


def step_html(step: Step, *, of: int, diagnosis: Diagnosis | None = None) -> str:
    """One step whole; ``of`` is the number of steps in its episode."""
    wrong = diagnosis is not None and step.index == diagnosis.step
    mark = " class='hl-mark'" if wrong else ""
    also = diagnosis is not None and not wrong and step.index in diagnosis.steps
    said = (
        " This is the earliest step that went wrong."
        if wrong
        else " This step went wrong in the same way."
        if also
        else ""
    )
    return "".join(
        (
            f"<p{mark}><b>Step {step.index}</b> ({step.index + 1} of {of}).{said}</p>",
            section("Observation", block(step.observation)),
            section(_request_title(step), request_html(step), open_=False),
            *(_reply(reply, number, len(step.replies)) for number, reply in enumerate(step.replies[:SAMPLES])),
            f"<p>and {len(step.replies) - SAMPLES} more replies</p>" if len(step.replies) > SAMPLES else "",
            section("Action", _action(step)),
            section("Fired", f"<p>{', '.join(map(text, step.fired)) or 'nothing of the harness fired'}</p>"),
            section("Result", block(step.result) + _note(step)),
        )
    )


def request_html(step: Step) -> str:
    """The exact request: sampling, choices, and each message."""
    body = step.request
    sampling = {name: body[name] for name in _PARAMETERS if body.get(name) is not None}
    others = {name: value for name, value in body.items() if name not in (*_PARAMETERS, "messages")}
    parts = [f"<p>{text(', '.join(f'{name} = {value}' for name, value in sampling.items()), 400)}</p>"]
    for message in body.get("messages", ()):
        content = message.get("content")
        rest = {name: value for name, value in message.items() if name not in ("role", "content")}
        shown = content if isinstance(content, str) else plain_json(content) if content is not None else ""
        parts.append(f"<p><span class='hl-tag'>{text(message.get('role'))}</span></p>{block(shown)}")
        if rest:
            parts.append(block(plain_json(rest)))
    if step.admissible is not None:
        listed = "\n".join(step.admissible[:CHOICES])
        more = f"\n… and {len(step.admissible) - CHOICES} more" if len(step.admissible) > CHOICES else ""
        parts.append(section(f"{len(step.admissible)} admissible actions", block(listed + more), open_=False))
    if others:
        parts.append(section("Everything else in the body", block(plain_json(others)), open_=False))
    return "".join(parts)


def moment_html(step: Step) -> str:
    """A step in short, for evidence: observation, reply, action, result."""
    return (
        f"<p>Observation</p>{block(step.observation, 1500)}<p>Reply</p>{block(step.raw, 1500)}"
        f"<p>Action</p>{_action(step)}<p>Result</p>{block(step.result, 1500)}"
    )


def _request_title(step: Step) -> str:
    free = f"{step.choices} choices left to the model" if step.choices else "the model was free to write"
    return f"Request ({len(step.request.get('messages', ()))} messages, {free})"


def _reply(reply: Mapping[str, Any], number: int, of: int) -> str:
    name = f"Raw reply {number + 1} of {of}" if of > 1 else "Raw reply"
    replayed = ", replayed" if reply.get("cached") else ""
    title = (
        f"{name} ({reply.get('completion_tokens', 0)} tokens, finished by {reply.get('finish_reason') or 'itself'}, "
        f"{float(reply.get('seconds') or 0):.1f} s{replayed})"
    )
    calls = reply.get("tool_calls")
    return section(title, block(reply.get("text")) + (block(plain_json(calls)) if calls else ""))


def _action(step: Step) -> str:
    words = ["executed" if step.executed else "not executed", "invalid" if step.invalid else "valid"]
    shown = block(action_text(step.action)) if step.action is not None else "<p>No action was read from the reply.</p>"
    problem = f"<p>{text(step.problem, 400)}</p>" if step.problem else ""
    return f"{shown}<p><span class='hl-tag'>{'</span> <span class=hl-tag>'.join(words)}</span></p>{problem}"


def _note(step: Step) -> str:
    return f"<p>The harness added:</p>{block(step.note)}" if step.note else ""
