"""A GBNF grammar (llama.cpp) that admits exactly the given texts.

Common prefixes are factored out: the sampler walks every open alternative for every token, so that
150 flat alternatives made a small model several times slower.
"""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def choice_grammar(choices: Sequence[str]) -> str:
    """``root`` is one of ``choices``, the order and doubles of which do not matter."""
    wanted = sorted(set(choices))
    if not wanted:
        raise ValueError("choices must hold at least one text")
    return f"root ::= {_alternatives(wanted)}"


def _alternatives(texts: list[str]) -> str:
    """One expression for sorted, distinct texts: alternatives by first character, shared prefixes once."""
    parts: list[str] = []
    start = 0
    while start < len(texts):
        end = start + 1
        while end < len(texts) and texts[end][:1] == texts[start][:1]:
            end += 1
        group = texts[start:end]
        prefix = _shared_prefix(group[0], group[-1])  # of sorted texts, the first and the last differ most
        if len(group) == 1:
            parts.append(_literal(prefix))
        else:
            parts.append(f"{_literal(prefix)} ({_alternatives([text[len(prefix) :] for text in group])})")
        start = end
    return " | ".join(parts)


def _shared_prefix(first: str, last: str) -> str:
    for index, (left, right) in enumerate(zip(first, last, strict=False)):
        if left != right:
            return first[:index]
    return min(first, last, key=len)


def _literal(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02X}" if code < 0x20 or code == 0x7F else char
