"""Patterns with a deadline."""

from __future__ import annotations

import pytest

from harnesslab.harness import regexes
from harnesslab.harness.regexes import MAX_PATTERN, Regex


def test_search_and_extract() -> None:
    assert Regex(r"(?i)EGG").search("an egg")
    assert Regex(r"take (\w+)|drop (\w+)").extract("take egg, drop pan") == ["egg", "pan"]
    assert Regex(r"\d+").extract("1 and 22") == ["1", "22"]
    assert Regex("a").sub("b", "aa", 1) == "ba"


@pytest.mark.parametrize("pattern", ["(", "[", "(?P<1>x)", "*", "a{2,1}", "x" * (MAX_PATTERN + 1)])
def test_bad_patterns_are_value_errors(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"regex|characters"):
        Regex(pattern)


def test_a_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regexes, "DEADLINE", 0.05)
    slow, text = Regex("(x+x+)+y"), "x" * 5000
    for use in (slow.search, slow.fullmatch, slow.extract, lambda t: slow.sub("", t)):
        with pytest.raises(TimeoutError):
            use(text)


@pytest.mark.parametrize(
    ("pattern", "replacement", "good"),
    [("(a)b", r"\1", True), ("(?P<n>a)", r"\g<n>", True), ("a", r"\1", False), ("a", r"\g<n>", False), ("a", "", True)],
)
def test_replacements_are_checked(pattern: str, replacement: str, good: bool) -> None:
    assert (Regex(pattern).check_replacement(replacement) == "") == good


def test_equal_patterns_are_equal() -> None:
    assert Regex("a") == Regex("a") != Regex("b")
    assert len({Regex("a"), Regex("a")}) == 1
