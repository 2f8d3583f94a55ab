"""The grammar admits the given texts and nothing else: read back by a small GBNF reader."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.llm.grammar import choice_grammar

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([()|])|\s+', re.DOTALL)


def language(grammar: str) -> list[str]:
    """Every text that a grammar of literals, groups and alternatives admits."""
    tokens = [
        ("text", match[1]) if match[2] is None else ("mark", match[2])
        for match in _TOKEN.finditer(grammar.removeprefix("root ::= "))
        if match[0].strip() or match[1] is not None
    ]
    position = 0

    def alternatives() -> list[str]:
        nonlocal position
        found = sequence()
        while position < len(tokens) and tokens[position] == ("mark", "|"):
            position += 1
            found += sequence()
        return found

    def sequence() -> list[str]:
        nonlocal position
        done = [""]
        while position < len(tokens) and tokens[position] not in (("mark", "|"), ("mark", ")")):
            kind, value = tokens[position]
            position += 1
            if kind == "text":
                tail = [unescape(value)]
            else:
                tail = alternatives()
                position += 1
            done = [head + end for head in done for end in tail]
        return done

    return alternatives()


def unescape(text: str) -> str:
    plain = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
    return re.sub(
        r"\\(?:x([0-9A-F]{2})|(.))", lambda found: chr(int(found[1], 16)) if found[1] else plain[found[2]], text
    )


@given(st.lists(st.text(max_size=12), min_size=1, max_size=30))
def test_admits_exactly_the_choices(choices: list[str]) -> None:
    assert sorted(language(choice_grammar(choices))) == sorted(set(choices))


@given(st.lists(st.text(alphabet='ab\\"\n', max_size=5), min_size=1, max_size=30))
def test_admits_exactly_choices_with_much_in_common(choices: list[str]) -> None:
    assert sorted(language(choice_grammar(choices))) == sorted(set(choices))


def test_shared_prefixes_stand_once() -> None:
    grammar = choice_grammar([f"go to kitchen {number}" for number in range(100)])
    assert grammar.count("go to kitchen") == 1


def test_no_choices_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        choice_grammar([])
