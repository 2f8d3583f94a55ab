"""From what the agent has seen to OpenAI chat messages.

The system message holds the base prompt, the tools where the protocol needs them written out, and what interventions
added. The instruction stands at the top of the first user message, however much of the past is cut, unless
that observation already holds it. Past turns follow as user and assistant messages, then the present observation
between ``draft.before`` and ``draft.after``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.harness.context import Context, Draft, Proposal, Protocol, Turn
from harnesslab.harness.load import PromptSpec
from harnesslab.harness.protocol import call, dumps, expected_form, render
from harnesslab.harness.toolschema import Tools, function, properties, required, resolved, schema_root

Message = dict[str, Any]


def build_messages(context: Context, draft: Draft, prompt: PromptSpec) -> tuple[Message, ...]:
    """The messages of one request. With native tool calls, past calls are told as the API wants them."""
    native = context.protocol == "tools" and bool(context.tools)
    messages: list[Message] = []
    paragraphs = [prompt.system, *draft.system]
    if context.tools and not native and prompt.tools:
        paragraphs.insert(1, describe_tools(context.tools))
    system = "\n\n".join(text for text in paragraphs if text)
    if system:
        messages.append({"role": "system", "content": system})
    past = context.history[-draft.history :] if draft.history else ()
    before = [*draft.before]
    head = context.instruction
    pending: str | None = None
    for number, turn in enumerate(past, len(context.history) - len(past)):
        _tell(messages, pending, clip(turn.observation, prompt.observation_chars), head)
        head = ""
        pending = f"call_{number}" if native and isinstance(turn.action, dict) else None
        messages.append(_reply(turn, context, prompt, pending))
    observation = clip(context.observation, prompt.observation_chars)
    if pending:
        messages.append({"role": "tool", "tool_call_id": pending, "content": observation})
        observation = ""
    content = "\n\n".join(text for text in (*before, observation, *draft.after) if text)
    if content or not pending:
        _tell(messages, None, content, head)
    return tuple(messages)


def ask_again(
    messages: Sequence[Mapping[str, Any]], proposal: Proposal, text: str, context: Context, prompt: PromptSpec
) -> tuple[Message, ...]:
    """The messages of a request that asks again: the same, then the reply as it was, then ``text``."""
    turn = Turn(context.observation, proposal.raw, proposal.action, text)
    native = context.protocol == "tools" and bool(context.tools) and isinstance(proposal.action, dict)
    identity = f"call_{len(context.history)}_{context.asked}" if native else None
    added = [*map(dict, messages), _reply(turn, context, prompt, identity)]
    _tell(added, identity, clip(text, prompt.observation_chars), "")
    return tuple(added)


def _tell(messages: list[Message], pending: str | None, text: str, head: str) -> None:
    """Add one message to the agent: the result of a tool call, or a user message under the instruction."""
    if pending:
        messages.append({"role": "tool", "tool_call_id": pending, "content": text})
        return
    if head and head not in text:
        text = f"{head}\n\n{text}" if text else head
    messages.append({"role": "user", "content": text})


def _reply(turn: Turn, context: Context, prompt: PromptSpec, identity: str | None) -> Message:
    if identity is not None and isinstance(turn.action, dict):
        return {"role": "assistant", "content": "", "tool_calls": [call(turn.action, identity)]}
    if turn.action is not None:
        return {"role": "assistant", "content": render(turn.action, context.protocol, context.tools)}
    return {"role": "assistant", "content": clip(turn.raw, prompt.reply_chars) or "(empty reply)"}


def clip(text: str, limit: int) -> str:
    """``text``, or its two ends with a marker that says how many characters were cut between them."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail]}\n[... {len(text) - limit} characters cut ...]\n{text[len(text) - tail :]}"


def describe_tools(tools: Tools) -> str:
    """The tools as text: name, description, and each parameter on a line."""
    parts = ["You have these tools:"]
    for tool in tools:
        inner = function(tool)
        about = str(inner.get("description") or "").strip()
        parts.append(f"- {inner.get('name')}" + (f": {about}" if about else ""))
        needed = required(tool)
        for name in properties(tool):
            parts.append("    " + _parameter(tool, name, name in needed))
    return "\n".join(parts)


def describe_own(tools: Tools, protocol: Protocol) -> str:
    """Tools of the harness's own as text, beside an environment that takes text actions."""
    return f"{describe_tools(tools)}\nTo use a tool instead of an action: {expected_form(protocol, tools)}"


def _parameter(tool: Any, name: str, needed: bool) -> str:
    declared, root = properties(tool)[name], schema_root(tool)
    spec = {**resolved(declared, root), **declared}
    kind = spec.get("type", "any")
    words = [kind if isinstance(kind, str) else " or ".join(map(str, kind)) if isinstance(kind, list) else "any"]
    if "enum" in spec:
        words.append(f"one of {dumps(spec['enum'])}")
    if not needed:
        words.append("optional")
    about = str(spec.get("description") or "").strip()
    return f"{name} ({', '.join(words)})" + (f": {about}" if about else "")
