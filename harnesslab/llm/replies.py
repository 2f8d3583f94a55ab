"""One normaliser for what endpoints send back.

Servers differ: content is text, null or a list of parts; thinking comes in a field of its own or
in tags; tool calls come truncated, split over entries, or glued together. All of that ends here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from harnesslab.errors import BackboneError
from harnesslab.llm.body import unwrap_choice
from harnesslab.llm.failures import clip, status_cause
from harnesslab.llm.types import Completion
from harnesslab.plainjson import loads, too_deep, without_surrogates

_THINK = re.compile(r"<(think|thinking)>.*?(?:</\1>|\Z)\s*", re.DOTALL)
_THINK_END = re.compile(r"\A.*</think(?:ing)?>\s*", re.DOTALL)


def to_completion(raw: Any, body: Mapping[str, Any], *, seconds: float, where: str) -> Completion:
    """Read a chat.completion object. ``where`` names the endpoint in errors.

    A text is read as JSON or as the events of a stream, whatever its content type was. Raises BackboneError where there
    is no reply in it.
    """
    raw = _from_text(raw) if isinstance(raw, str) else raw
    choice = _first_choice(raw, where)
    message = choice["message"]
    content = message.get("content")
    parts = [part for part in content if _is_call(part)] if isinstance(content, list) else []
    calls = message.get("tool_calls") or parts
    legacy = message.get("function_call")
    if not calls and isinstance(legacy, Mapping):
        calls = [{"function": legacy}]
    text = _text(content) or _text(message.get("refusal"))
    if len(text) > MAX_CHARS:
        message = f"{where} answered with a text of {len(text):,} characters; at most {MAX_CHARS:,} are read"
        raise BackboneError(message, cause="garbled")
    usage = raw.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Completion(
        text=without_surrogates(unwrap_choice(strip_thinking(text), body)),
        tool_calls=tool_calls(calls),
        finish_reason=_finish(choice, usage, body),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        model=str(raw.get("model") or ""),
        provider=str(raw.get("provider") or ""),
        seconds=seconds,
        body=body,
    )


MAX_CHARS = 1_000_000
"""Characters of a reply; more is no reply of a model but a server that does not stop."""
_MAX_COUNT = 2**53
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "token_limit"})
_FILTERED = frozenset(
    {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "guardrail_intervened"}
)
_BROKEN = frozenset(
    {
        "interrupted",
        "error",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "timeout",
        "insufficient_system_resource",
        "time",
    }
)


def _finish(choice: Mapping[str, Any], usage: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Why the reply ended: ``length``, ``content_filter`` and ``interrupted`` whatever the server calls them.

    A server that says ``stop`` of a reply without any text or call that took all its tokens was cut off while it thought.
    """
    said = str(choice.get("finish_reason") or "stop")
    for reasons, name in ((_CUT, "length"), (_FILTERED, "content_filter"), (_BROKEN, "interrupted")):
        if said.casefold() in reasons:
            return name
    message = choice.get("message")
    empty = isinstance(message, Mapping) and not any(
        message.get(key) for key in ("content", "tool_calls", "function_call")
    )
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    spent = _count(usage.get("completion_tokens"))
    return "length" if empty and isinstance(limit, int) and spent >= limit > 0 else said


def _is_call(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") in ("tool_use", "function_call", "tool_call")


def _first_choice(raw: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        message = f"{where} did not answer with a JSON object; is it an OpenAI-compatible endpoint (…/v1)?"
        raise BackboneError(message, cause="garbled")
    _raise_error(raw.get("error"), where)
    choices = raw.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        message = f"{where} answered without any choice; is it an OpenAI-compatible chat endpoint (…/v1)?"
        raise BackboneError(message, cause="garbled")
    _raise_error(choices[0].get("error"), where)
    if not isinstance(choices[0].get("message"), Mapping):
        raise BackboneError(f"{where} answered with a choice that has no message", cause="garbled")
    return choices[0]


def _raise_error(error: Any, where: str) -> None:
    if error:
        told = error.get("message", error) if isinstance(error, Mapping) else error
        message = f"{where} answered with an error: {clip(told)}"
        raise BackboneError(message, cause=status_cause(_status(error), str(told)))


def _from_text(text: str) -> Any:
    """The JSON value of a reply with another content type, or the events of a stream that nobody asked for, put together."""
    events = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    try:
        if not events:
            return loads(text)
        chunks = [loads(event) for event in events if event != "[DONE]"]
    except ValueError:
        return text
    return assemble(chunk for chunk in chunks if isinstance(chunk, Mapping))


def _status(error: Any) -> int:
    """The HTTP status that an error object in a reply names; 500 where it names none."""
    codes = [error.get(key) for key in ("code", "status")] if isinstance(error, Mapping) else []
    named = (
        int(code)
        for code in codes
        if isinstance(code, int) or (isinstance(code, str) and code.isascii() and code.isdigit())
    )
    return next((code for code in named if 400 <= code < 600), 500)


def strip_thinking(text: str) -> str:
    """``text`` without ``<think>`` blocks. A block that was never closed is dropped to the end.

    A closing tag without an opening one (the template opened it in the prompt) drops all before it.
    """
    if "<think" not in text and "</think" not in text:
        return text
    return _THINK_END.sub("", _THINK.sub("", text))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _part(content)
    if isinstance(content, list):
        parts = (part if isinstance(part, str) else _part(part) for part in content)
        return "".join(parts)
    return ""


def _part(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") not in ("text", "output_text"):
        return ""
    return str(part.get("text") or "")


def _count(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < _MAX_COUNT else 0


def tool_calls(raw: Any) -> tuple[dict[str, Any], ...]:
    """Tool calls as ``{"id", "name", "arguments": dict}``.

    Arguments that are no JSON object (cut off, or not JSON) stay the text that they are, and whoever reads the
    call says so: a cut-off command must not be executed as if it were whole.
    An entry without a name continues the one before it; several objects glued together become several calls.
    """
    entries: list[dict[str, Any]] = []
    for item in raw if isinstance(raw, (list, tuple)) else [raw]:
        if not isinstance(item, Mapping):
            continue
        inner = item.get("function")
        function = inner if isinstance(inner, Mapping) else item
        name = str(function.get("name") or "")
        arguments = next((function[key] for key in ("arguments", "input", "parameters") if key in function), None)
        if not name and entries and isinstance(arguments, str) and isinstance(entries[-1]["arguments"], str):
            entries[-1]["arguments"] += arguments
        elif name:
            arguments = "" if arguments is None else arguments
            entries.append({"id": str(item.get("id") or ""), "name": name, "arguments": arguments})
    return tuple(without_surrogates(call) for entry in entries for call in _read_arguments(entry))


def _read_arguments(entry: dict[str, Any]) -> list[dict[str, Any]]:
    given = entry["arguments"]
    if isinstance(given, Mapping):
        return [{**entry, "arguments": dict(given) if not too_deep(given) else "nested too deeply"}]
    text = str(given).strip()
    objects: list[dict[str, Any]] = []
    decoder, position = json.JSONDecoder(), 0
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            if isinstance(value, str):  # arguments that were encoded twice
                value = json.loads(value)
            if not isinstance(value, dict):
                raise ValueError("not an object")
            if too_deep(value):
                raise ValueError("nested too deeply")
            objects.append(value)
            while text[position : position + 1].isspace():
                position += 1
    except (ValueError, RecursionError):
        return [{**entry, "arguments": text}]
    return [{**entry, "arguments": value} for value in objects or [{}]]


def assemble(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put the chunks of a streamed reply together into one chat.completion object.

    Tool calls are told apart by their id as well as their index, because some servers give every call index 0. A stream
    that ends without a reason to finish was cut off.
    """
    content: list[str] = []
    calls: list[dict[str, Any]] = []
    whole: dict[str, Any] = {}
    finish = None
    for chunk in chunks:
        whole.update({name: chunk[name] for name in ("model", "usage", "error", "timings") if chunk.get(name)})
        choices = chunk.get("choices")
        for choice in _mappings(choices):
            delta = choice.get("delta") or choice.get("message")
            delta = delta if isinstance(delta, Mapping) else {}
            content.append(_text(delta.get("content")))
            for piece in _mappings(delta.get("tool_calls")):
                _add_piece(calls, piece)
            finish = choice.get("finish_reason") or finish
    message: dict[str, Any] = {"role": "assistant", "content": "".join(content)}
    if calls:
        message["tool_calls"] = calls
    if "error" not in whole:
        whole["choices"] = [{"index": 0, "finish_reason": finish or "interrupted", "message": message}]
    return whole


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _add_piece(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> None:
    function = piece.get("function")
    function = function if isinstance(function, Mapping) else {}
    index, new_id = piece.get("index", 0), piece.get("id")
    open_call = next((call for call in reversed(calls) if call["index"] == index), None)
    if open_call is None or (new_id and open_call["id"] and new_id != open_call["id"]):
        open_call = {"index": index, "id": new_id or "", "function": {"name": "", "arguments": ""}}
        calls.append(open_call)
    open_call["id"] = open_call["id"] or new_id or ""
    for part in ("name", "arguments"):
        given = function.get(part) or ""
        open_call["function"][part] += given if isinstance(given, str) else json.dumps(given)
