"""One step, and one episode, as static HTML: what was seen, asked, answered, done, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harnesslab.markup import Markup, block, fill, join, paragraph, plain_json, section
from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import Diagnosis, action_text

SAMPLES = 8
"""Replies of one step that are shown in full; the rest is counted."""
CHOICES = 60
"""Choices of one request that are listed."""
_PARAMETERS = ("model", "temperature", "max_tokens", "seed", "top_p", "cache_prompt")


def episode_html(episode: Episode, diagnosis: Diagnosis | None = None) -> Markup:
    """The head of an episode: task, outcome, numbers, and the diagnosis."""
    outcome = "solved" if episode.solved else "failed" if episode.status == "finished" else "unscorable"
    numbers = (
        f"{episode.length} of {episode.budget} steps, {episode.invalid} invalid, progress {episode.progress:.0%}, "
        f"{episode.prompt_tokens + episode.completion_tokens} tokens, {episode.seconds:.1f} s"
    )
    told = (episode.task_id, episode.family, outcome, episode.reason, numbers)
    head = fill("<p><b>{}</b> ({}) {}: {}. {}.</p>", *told, limit=300) + paragraph(f"Task: {episode.instruction}", 1000)
    if diagnosis is None:
        return head
    why = f"Earliest bottleneck: {diagnosis.label}, step {diagnosis.step}. {diagnosis.reason}"
    return head + paragraph(why, 400, mark=True)


def step_html(step: Step, *, of: int, diagnosis: Diagnosis | None = None) -> Markup:
    """One step whole; ``of`` is the number of steps in its episode."""
    wrong = diagnosis is not None and step.index == diagnosis.step
    also = diagnosis is not None and not wrong and step.index in diagnosis.steps
    said = (
        " This is the earliest step that went wrong."
        if wrong
        else " This step went wrong in the same way."
        if also
        else ""
    )
    more = f"and {len(step.replies) - SAMPLES} more replies" if len(step.replies) > SAMPLES else ""
    number = fill("<b>Step {}</b> ({} of {}).{}", step.index, step.index + 1, of, said)
    return join(
        (
            paragraph(number, mark=wrong),
            section("Observation", block(step.observation) + _seen(step)),
            section(_request_title(step), request_html(step), open_=False),
            *(_reply(reply, number, len(step.replies)) for number, reply in enumerate(step.replies[:SAMPLES])),
            paragraph(more),
            section("Action", _action(step)),
            section("Fired", paragraph(", ".join(step.fired) or "no intervention fired")),
            section("Result", block(step.result) + _note(step)),
        )
    )


def request_html(step: Step) -> Markup:
    """The exact request: sampling, choices, and each message."""
    body = step.request
    sampling = {name: body[name] for name in _PARAMETERS if body.get(name) is not None}
    others = {name: value for name, value in body.items() if name not in (*_PARAMETERS, "messages")}
    parts = [paragraph(", ".join(f"{name} = {value}" for name, value in sampling.items()), 400)]
    for message in body.get("messages", ()):
        content = message.get("content")
        rest = {name: value for name, value in message.items() if name not in ("role", "content")}
        shown = content if isinstance(content, str) else plain_json(content) if content is not None else ""
        parts.append(fill("<p><span class='hl-tag'>{}</span></p>{}", message.get("role"), block(shown)))
        if rest:
            parts.append(block(plain_json(rest)))
    if step.admissible is not None:
        listed = "\n".join(step.admissible[:CHOICES])
        more = f"\n… and {len(step.admissible) - CHOICES} more" if len(step.admissible) > CHOICES else ""
        parts.append(section(f"{len(step.admissible)} admissible actions", block(listed + more), open_=False))
    if others:
        parts.append(section("Everything else in the body", block(plain_json(others)), open_=False))
    return join(parts)


def moment_html(step: Step) -> Markup:
    """A step in short, for evidence: observation, reply, action, result."""
    return fill(
        "<p>Observation</p>{}<p>Reply</p>{}<p>Action</p>{}<p>Result</p>{}",
        block(step.observation, 1500), block(step.raw, 1500), _action(step), block(step.result, 1500),
    )  # fmt: skip


def _request_title(step: Step) -> str:
    free = f"{step.choices} choices left to the model" if step.choices else "the model was free to write"
    return f"Request ({len(step.request.get('messages', ()))} messages, {free})"


def _reply(reply: Mapping[str, Any], number: int, of: int) -> Markup:
    name = f"Raw reply {number + 1} of {of}" if of > 1 else "Raw reply"
    replayed = ", replayed" if reply.get("cached") else ""
    title = (
        f"{name} ({reply.get('completion_tokens', 0)} tokens, finished by {reply.get('finish_reason') or 'itself'}, "
        f"{float(reply.get('seconds') or 0):.1f} s{replayed})"
    )
    calls = reply.get("tool_calls")
    again = reply.get("again")
    asked = paragraph("The harness asked again in the same step:") + block(again) if again else Markup()
    return section(title, block(reply.get("text")) + (block(plain_json(calls)) if calls else Markup()) + asked)


def _seen(step: Step) -> Markup:
    return (
        paragraph("The harness has rewritten it; the environment said:") + block(step.seen) if step.seen else Markup()
    )


def _action(step: Step) -> Markup:
    words = ["executed" if step.executed else "not executed", "invalid" if step.invalid else "valid"]
    shown = (
        paragraph("No action could be read from the reply.") if step.action is None else block(action_text(step.action))
    )
    tags = Markup(" ").join(fill("<span class='hl-tag'>{}</span>", word) for word in words)
    return shown + paragraph(tags) + paragraph(step.problem, 400)


def _note(step: Step) -> Markup:
    return paragraph("The harness added:") + block(step.note) if step.note else Markup()
