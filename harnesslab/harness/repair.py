"""Find the text action that a reply means, where the strict parser found none. Used by the ``rescue`` kind.

Every function takes untrusted model text, never executes it, and returns None where it finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from harnesslab.harness.actions import key

MAX_CHARS = 20_000
"""Characters of a reply that are looked at."""

_FENCE = re.compile(r"```[ \t]*[\w+#.-]*[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PREFIX = re.compile(r"(?:next |final |chosen )?(?:action|command)(?: is)?\s*[:=]\s*", re.IGNORECASE)
_TAG = re.compile(r"<(action|command)>\s*(.*?)\s*</\1>", re.IGNORECASE | re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[>*•-]\s+|\d+[.)]\s+)+")
_MARKUP = "*_`\"'“”‘’ \t\r\n"


def clean(line: str) -> str:
    """A line without list marks, markup, quotes around it and a full stop at its end."""
    text = _BULLET.sub("", line).strip(_MARKUP)
    if text.endswith((".", "!", ";", ",")):
        text = text[:-1].rstrip(_MARKUP)
    return text


def fences(raw: str) -> list[str]:
    """Contents of the fenced blocks of a reply; the last one may be open."""
    return [match[1].strip("\n") for match in _FENCE.finditer(raw[:MAX_CHARS]) if match[1].strip()]


def json_objects(raw: str) -> list[dict[str, Any]]:
    """The JSON objects in a reply, mended where they are broken, outermost ones only."""
    raw = raw[:MAX_CHARS]
    start = raw.find("{")
    if start < 0:
        return []
    value = mended(raw[start:])
    found = value if isinstance(value, list) else [value]
    return [item for item in found if isinstance(item, dict) and item]


def mended(text: str) -> Any:
    """The JSON value that a broken text means, by json-repair; None where that gives up."""
    import json_repair

    try:
        return json_repair.loads(text[:MAX_CHARS])
    except (ValueError, RecursionError):
        return None


def find_text_action(raw: str, admissible: Sequence[str] | None, max_chars: int) -> str | None:
    """The action that a reply means. With a list of admissible ones, a listed candidate beats every other.

    Without one among the candidates the first of them counts, if it has at most ``max_chars`` characters.
    """
    raw = raw[:MAX_CHARS]
    listed = {key(action): action for action in admissible or ()}
    candidates = [text for text in map(clean, _candidates(raw)) if text]
    for text in candidates:
        if key(text) in listed:
            return listed[key(text)]
    mentioned = _mentioned(raw, admissible or ())
    if mentioned:
        # Several of them: to pick one would be a guess.
        return mentioned[0] if len(mentioned) == 1 else None
    verbs = {action.split()[0] for action in listed if action}
    for text in candidates:
        if len(text) <= max_chars and (not verbs or key(text).split()[0] in verbs):
            return text
    return None


def _candidates(raw: str) -> Iterator[str]:
    """Texts that may be the action, the surest first."""
    for item in json_objects(raw):
        value = next((item[k] for k in ("action", "Action", "command") if isinstance(item.get(k), str)), None)
        if value:
            yield value
    yield from (match[2] for match in _TAG.finditer(raw))
    marked = [line[match.end() :] for line in raw.split("\n") for match in _PREFIX.finditer(line)]
    yield from reversed([text for text in marked if text.strip(_MARKUP)])
    yield from (block for block in fences(raw) if "\n" not in block.strip())
    yield from (match[1] for match in _INLINE.finditer(raw))
    lines = [line for line in raw.split("\n") if line.strip(_MARKUP) and not line.strip().startswith("```")]
    yield from lines[:1] if len(lines) == 1 else ()
    yield from (line for line in lines if len(lines) > 1 and len(line) < 200)


def _mentioned(raw: str, admissible: Sequence[str]) -> list[str]:
    """The admissible actions that the text names, without those that are part of a longer one."""
    text = " ".join(raw.split()).casefold()
    found = [action for action in admissible if action and _names(text, key(action))]
    return [a for a in found if not any(a != b and key(a) in key(b) for b in found)]


def _names(text: str, action: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(action)}(?!\w)", text) is not None
