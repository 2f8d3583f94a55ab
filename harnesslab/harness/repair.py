"""Find the text action that a reply means, where the strict parser found none, and mend JSON. Used by ``rescue``.

Every function takes untrusted model text, never executes it, and returns None where it finds nothing. Prose is no
action, whatever it mentions: an action has a label, a tag, a key or a block of its own, or its own line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from harnesslab.harness.actionlines import OBSERVED, Block, without
from harnesslab.harness.actions import key
from harnesslab.plainjson import leading_json, loads

MAX_CHARS = 100_000
"""Characters of a reply that are looked at; a longer one is left alone, never cut."""

MAX_MENDED = 10_000
"""Characters of broken JSON that are mended; json-repair is not linear."""

_OPENING = re.compile(r"[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`\n]*")
_PREFIX = re.compile(
    r"[\s>*•_`#\d.)-]*(?:(?:my|the|your|i choose the)\s+)?(?:next |final |chosen )?(?:action|command)(?: is)?[*_`]*\s*[:=]"
    r"[*_]*\s*(?P<action>.*)",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r"<(action|command)>((?:(?!</?\1>).)*)</\1>", re.IGNORECASE | re.DOTALL)
_KEYS = ("action", "Action", "command")
_BOLD_ACTION = re.compile(r"^[ \t>]*[*_]+[ \t]*action[ \t*_]*:[*_]*[ \t]*(\S.*)", re.IGNORECASE | re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[>*•-]\s+|\d+[.)]\s+)+")
_MARKUP = "*_`\"'“”‘’ \t\r\n"
_SENTENCE = re.compile(
    r"[.!?…][\"'”’)]*(?:\s|$)|[:,]$|"
    r"\b(?:i|i'm|i'll|i've|i'd|we|we'll|let|let's|you|sure|sorry|should|would|could|cannot|can't|don't|not|now|okay|yes)\b",
    re.IGNORECASE,
)
_ESCAPES = re.compile(r"\\[nrtbf\"'/\\]")
_QUOTED_OBJECT = re.compile(r"(:\s*)'(\{.*\})'", re.DOTALL)
_NO_VALUE = re.compile(r":\s*(?:[,}\]]|\Z)")
_LITERALS = re.compile(r"\b(?:None|null)\b")


def clean(line: str) -> str:
    """A line without list marks, markup, quotes around it and a full stop at its end."""
    text = _BULLET.sub("", line).strip(_MARKUP)
    if text.endswith((".", "!", ";", ",")):
        text = text[:-1].rstrip(_MARKUP)
    return text


class Fence:
    """A fenced block: its language tag, its content, the characters that it takes, whether it is closed."""

    __slots__ = ("closed", "content", "end", "language", "start")

    def __init__(self, language: str, content: str, start: int, end: int, closed: bool):
        self.language, self.content, self.start, self.end, self.closed = language, content, start, end, closed


def fences(raw: str) -> list[Fence]:
    """The fenced blocks of a text that hold something; the last one may be open."""
    found: list[Fence] = []
    opened: tuple[str, str, int, list[str]] | None = None
    position = 0
    for line in raw.split("\n"):
        if opened is None:
            match = _OPENING.fullmatch(line.rstrip("\r"))
            if match is not None:
                opened = (match["ticks"], match["language"].casefold(), position, [])
        else:
            ticks, language, start, lines = opened
            mark = line.strip()
            if mark.startswith(ticks) and mark.strip(ticks[0]) in ("", "<end_code>", "<end_action>"):
                found.append(Fence(language, "\n".join(lines), start, position + len(line), True))
                opened = None
            else:
                lines.append(line)
        position += len(line) + 1
    if opened is not None:
        _, language, start, lines = opened
        found.append(Fence(language, "\n".join(lines), start, len(raw), False))
    return [fence for fence in found if fence.content.strip()]


def extent(raw: str, start: int) -> tuple[int, bool]:
    """Where the bracket that opens at ``start`` closes, and whether it does; brackets in quoted text do not count."""
    end, quoted = _closing(raw, start)
    if end is not None and not quoted:
        return end, True
    stop = next((raw.index(mark, start) for mark in ("\n```", "</", "<|") if mark in raw[start:]), len(raw))
    return stop, False


def _closing(raw: str, start: int) -> tuple[int | None, bool]:
    """Where the first bracket closes, if it does, and whether the text ends within quotes."""
    depth, quote, escaped = 0, "", False
    for position in range(start, len(raw)):
        char = raw[position]
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and not raw[position - 1 : position].isalnum()):
            quote = char
        elif char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
            if depth == 0:
                return position + 1, False
    return None, bool(quote)


def mended(text: str) -> Any:
    """The JSON value that a broken text means, by json-repair; None where that gives up, or loses or invents anything.

    Brackets, quotes, commas and the case of true, false and null may be mended; every letter and digit stays. A text
    that ends within quotes was cut off: where its last value would have ended is not known.
    """
    import json_repair

    if len(text) > MAX_MENDED or _NO_VALUE.search(text) or _closing(text, 0)[1]:
        return None
    try:
        value = loads(_QUOTED_OBJECT.sub(r"\1\2", text))
    except ValueError:
        try:
            value = loads(json.dumps(json_repair.loads(text), ensure_ascii=False))
        except (ValueError, RecursionError, IndexError):
            return None
    lost = _letters(json.dumps(value, ensure_ascii=False)) != _letters(text)
    return None if lost or value in (None, "", [], {}) else value


def _letters(text: str) -> str:
    plain = _LITERALS.sub("null", _ESCAPES.sub(" ", text))
    return "".join(char for char in plain.casefold() if char.isalnum())


def text_rival(action: str, raw: str, read: Sequence[Block]) -> str:
    """Whether a reply marks another text action than ``action``, which was read from these blocks.

    ``other``, empty, or ``earlier``: in front of an observation that the model invented. Marks are a tag, a key of a
    JSON object, a header in bold.
    """
    if len(raw) > MAX_CHARS:
        return ""
    start = len("\n".join(raw.split("\n")[: read[0].line]))
    others = [one for one in _marks(without(raw, read)) if key(clean(one[1])) not in (key(action), key(clean(action)))]
    if not others:
        return ""
    position = 0
    for line in raw.split("\n"):
        if OBSERVED.match(line) and position > min(start, others[0][0]):
            break
        position += len(line) + 1
    if position <= start and others[0][0] < start:
        return "earlier"
    return "other" if others[0][0] < position else ""


def _marks(raw: str) -> list[tuple[int, str]]:
    """The text actions with a mark of their own, each with its position."""
    found = [(match.start(), match[2]) for match in _TAG.finditer(raw)]
    found += [(match.start(), match[1]) for match in _BOLD_ACTION.finditer(raw)]
    start, misses = raw.find("{"), 0
    while start >= 0 and misses < 16:
        try:
            value, end = leading_json(raw, start)
        except ValueError:
            value, end, misses = None, start + 1, misses + 1
        if isinstance(value, dict):
            found += [(start, value[k]) for k in _KEYS if isinstance(value.get(k), str)]
        start = raw.find("{", end)
    return sorted(one for one in found if one[1].strip())


class Ambiguous(Exception):
    """The reply means more than one action."""


def find_text_action(raw: str, admissible: Sequence[str] | None, max_chars: int, cut: bool = False) -> str | None:
    """The action that a reply means. With a list of admissible ones, listed candidates beat all others.

    Raises Ambiguous where several different actions are meant. ``cut``: the token limit ended the reply, so that a
    candidate at its very end does not count.
    """
    if len(raw) > MAX_CHARS:
        return None
    listed = {key(action): action for action in admissible or ()}
    verbs = {action.split()[0] for action in listed if action}
    kept = _before_observation(raw)
    for level in (_explicit, _own_lines):
        candidates = [text for text in (clean(one) for one in level(kept, cut and kept == raw)) if text]
        found = {key(text): listed[key(text)] for text in candidates if key(text) in listed}
        if not found:
            free = [text for text in candidates if len(text) <= max_chars and "\n" not in text]
            if verbs:
                free = [text for text in free if key(text).split()[0] in verbs]
            if level is _own_lines:
                # Nothing but its shape tells an unlisted command from talk.
                lone = len(candidates) == 1 and not _SENTENCE.search(candidates[0])
                free = [text for text in free if lone and not any(one in key(text) for one in listed)]
            found = {key(text): text for text in free}
        if len(found) > 1:
            raise Ambiguous
        if found:
            return next(iter(found.values()))
    return None


def _before_observation(raw: str) -> str:
    """The reply up to the first invented observation below its first line with words."""
    lines = raw.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip(_MARKUP)), len(lines))
    stop = next((number for number in range(first + 1, len(lines)) if OBSERVED.match(lines[number])), len(lines))
    return "\n".join(lines[:stop])


def _explicit(raw: str, cut: bool) -> Iterator[str]:
    """Texts that are marked as the action: by a key, a tag, a label, a block."""
    start, misses = raw.find("{"), 0
    while start >= 0 and misses < 16:
        try:
            value, end = leading_json(raw, start)
        except ValueError:
            end, closed = extent(raw, start)
            value = mended(raw[start:end]) if closed or not cut else None
            misses += value is None
        if isinstance(value, dict):
            yield from (value[k] for k in _KEYS if isinstance(value.get(k), str))
        elif value is None and end >= len(raw):
            break
        start = raw.find("{", max(end, start + 1))
    yield from (match[2] for match in _TAG.finditer(raw))
    blocks = [
        fence for fence in fences(raw) if (fence.closed or not cut) and not fence.content.lstrip().startswith("{")
    ]
    lines = raw.split("\n")
    for number, line in enumerate(lines):
        match = _PREFIX.fullmatch(line)
        if match is None or (cut and number == len(lines) - 1):
            continue
        below = next((text for text in lines[number + 1 :] if text.strip()), "")
        if match["action"].strip(_MARKUP):
            yield match["action"]
        elif below and not _OPENING.fullmatch(below.rstrip("\r")) and not (cut and below == lines[-1]):
            yield below
    yield from (fence.content for fence in blocks if not _PREFIX.fullmatch(fence.content))


def _own_lines(raw: str, cut: bool) -> Iterator[str]:
    """The lines of the reply outside its blocks and JSON; each may be an action by itself."""
    lines = raw.split("\n")
    for number, line in enumerate(lines):
        marked = line.lstrip().startswith(("```", "~~~", "{", "}", "<"))
        if line.strip(_MARKUP) and len(line) < 400 and not marked and not (cut and number == len(lines) - 1):
            yield line
