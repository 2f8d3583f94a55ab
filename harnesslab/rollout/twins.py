"""Which tasks are twins.

Two tasks are the *same* if their seed and options are equal (apart from the id), or if their texts are equal (apart
from case, punctuation and Unicode form). They are *near* if the texts are at least :data:`NEAR` percent alike, and differ in
*numbers* if nothing else differs. They have the same *start* if only the seed, which decides what comes later, differs.
Lines that several tasks share, such as a description of the tools, count for *same* only.

Candidates for *near* are found by the least hashes of their pieces, as in Broder, "On the resemblance and containment of
documents" (1997), so the time grows with the number of tasks and not with its square.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rapidfuzz import fuzz

from harnesslab.rollout.env import SPLITS, Split, Task

NEAR = 90.0
"""Percent of two texts that must be alike (``rapidfuzz.fuzz.ratio``)."""
SHORTEST = 20
"""Characters that a text needs for *near*: most short texts are alike."""
READ, HEAD = 5000, 1000
"""Characters of a text that are read for *near*, and of its own lines that are compared."""
COMMON = 3
"""A line that occurs in so many different texts does not count for *near*."""
_PIECE, _PROSE, _SKETCH, _POSTING, _TRIES = 5, 250, 20, 20, 10

Kind = Literal["same", "near", "start", "numbers"]


@dataclass(frozen=True, slots=True)
class Twin:
    """A task, and the one that it is like: in a split that is less held out, or earlier in its own."""

    kind: Kind
    split: Split
    task: Task
    like_split: Split
    like: Task
    text: str
    like_text: str


def find_twins(tasks: Sequence[tuple[Split, Task]], texts: Sequence[str], *, played: bool = False) -> Iterator[Twin]:
    """The twins among tasks in the order of :data:`SPLITS`; ``texts`` has one a task, empty where it is unknown.

    Each task has at most one twin in each split, the most alike. ``played``: the texts are how the tasks begin, which
    does not show all that a seed decides.
    """
    plain = [_plain(text) for text in texts]
    telling = _telling([split for split, _ in tasks], plain)
    whole = telling and not (played and len({task.seed for _, task in tasks}) > 1)
    near = _Near(texts, plain) if whole else None
    seen: dict[str, dict[Split, int]] = {}
    every = _keys(tasks, plain, telling)
    for place, (split, task) in enumerate(tasks):
        keys = every[place]
        for other in SPLITS:
            # In one split, a text that comes with other options is another task about the same thing.
            wanted = keys[: 2 if whole else 1] if other == split else keys
            key = next((key for key in wanted if other in seen.get(key, ())), None)
            found: int | None = None
            kind: Kind = "same"
            if key is not None:
                found, kind = seen[key][other], "same" if whole or key == keys[0] else "start"
            elif near is not None and other != split:
                found, kind = near.best(place, other)
            if found is not None:
                yield Twin(kind, split, task, *tasks[found], texts[place], texts[found])
        for key in keys:
            seen.setdefault(key, {}).setdefault(split, place)
        if near is not None:
            near.add(place, split)


class _Near:
    """Texts by their pieces, so that those that are nearly alike are found without comparing all pairs."""

    def __init__(self, texts: Sequence[str], plain: Sequence[str]):
        lines = [
            [_plain(line) for line in text[:READ].splitlines()] if "\n" in text else [whole]
            for text, whole in zip(texts, plain, strict=True)
        ]
        shared = Counter(line for different in {tuple(set(own)) for own in lines} for line in different)
        self._texts = [_rest(own, shared)[:HEAD] for own in lines]
        self._bands = [_bands(text) for text in self._texts]
        self._postings: dict[tuple[Split, int, int], list[int]] = {}
        self._counts: Counter[tuple[Split, int, int]] = Counter()

    def best(self, place: int, split: Split) -> tuple[int | None, Kind]:
        """The text of the split that is most alike, if one is alike enough."""
        votes: dict[int, float] = {}
        for band in self._bands[place]:
            key = (split, *band)
            for other in self._postings.get(key, ()):
                # What few texts have says more, and a long list holds only its first ones.
                votes[other] = votes.get(other, 0.0) + 1 / self._counts[key]
        text, found, score = self._texts[place], None, NEAR
        for other in sorted(votes, key=lambda other: -votes[other])[:_TRIES]:
            alike = fuzz.ratio(text, self._texts[other], score_cutoff=score)
            if alike >= score and (found is None or alike > score):
                found, score = other, alike
        if found is None:
            return None, "near"
        like = self._texts[found]
        return found, "numbers" if text != like and _masked(text) == _masked(like) else "near"

    def add(self, place: int, split: Split) -> None:
        """Let the text be found from now on."""
        for band in self._bands[place]:
            key = (split, *band)
            self._counts[key] += 1
            known = self._postings.setdefault(key, [])
            if len(known) < _POSTING:
                known.append(place)


def _bands(text: str) -> list[tuple[int, int]]:
    """What texts that are alike have in common: neighbours among their least hashes."""
    if len(text) < SHORTEST:
        return []
    if len(text) <= _PROSE:
        data = text.encode("utf-8", "replace")
        pieces = {data[start : start + _PIECE] for start in range(len(data) - _PIECE + 1)}
    else:
        words = text.encode("utf-8", "replace").split()
        pieces = {one + b" " + two for one, two in itertools.pairwise(words)} or {*words}
    return list(itertools.pairwise(sorted(map(zlib.crc32, pieces))[:_SKETCH]))


def _rest(lines: Sequence[str], shared: Mapping[str, int]) -> str:
    """The lines of a text without those that other texts have as well; all of them if nothing would be left."""
    own = [line for line in lines if shared[line] < COMMON]
    return " ".join(own if any(own) else lines).strip()


def _telling(splits: Sequence[Split], given: Sequence[str]) -> bool:
    """Whether texts or options identify tasks: most are the only one of their kind in their split."""
    known = [(split, one) for split, one in zip(splits, given, strict=True) if one]
    return 2 * len(set(known)) > len(known)


def _keys(tasks: Sequence[tuple[Split, Task]], plain: Sequence[str], telling: bool) -> list[list[str]]:
    """What a task has in common with one that is the same, the surest first: its seed, options and text, its options
    and text, its text.

    An option that is the task's id does not count if others identify the task as well: then it names nothing.
    """
    splits = [split for split, _ in tasks]
    options = [{name: _comparable(value) for name, value in task.options.items()} for _, task in tasks]
    without = [
        {name: value for name, value in all_.items() if value != task.id}
        for all_, (_, task) in zip(options, tasks, strict=True)
    ]
    if telling and any(plain):
        kept = without
    else:
        kept = without if _telling(splits, [_text(own) if own else "" for own in without]) else options
    keys = []
    for (_, task), own, text in zip(tasks, kept, plain, strict=True):
        more: list[Any] = [[own, text], text] if telling and text else []
        keys.append([_text(key) for key in ([task.seed, own, text], *more)])
    return keys


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _comparable(value: Any) -> Any:
    return _plain(value) if isinstance(value, str) and is_text(value) else value


def _plain(text: str) -> str:
    """The text without case, punctuation and invisible characters, in one Unicode form (NFKC), unless it has nothing else.

    Signs such as ``+ - * / % # @`` are not punctuation; a hyphen between letters is.
    """
    one = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(_HYPHEN.sub(" ", one.translate(_PUNCTUATION)).split()) or text.strip()


def _masked(text: str) -> str:
    return _NUMBER.sub("0", text)


class _Punctuation(dict[int, str | None]):
    """A table for ``str.translate``: punctuation is a space, what cannot be seen is left out; filled as it is used."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        kind = unicodedata.category(char)
        seen: str | None = char
        if kind == "Cf":
            seen = None
        elif char == "\N{HYPHEN}":
            seen = "-"
        elif char not in _SIGNS and kind.startswith("P") and kind != "Pc":
            seen = " "
        self[code] = seen
        return seen


_SIGNS = frozenset("-*/%&@#\\")
_PUNCTUATION = _Punctuation({ord("`"): " "})
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_NUMBER = re.compile(r"\d+(?: \d+)*")


def is_text(value: str) -> bool:
    """Whether it is prose and not a name, a path or a key: at least three words, or as much in a script without spaces."""
    return len(value.split()) >= 3 or (not value.isascii() and len(value) >= 8)
