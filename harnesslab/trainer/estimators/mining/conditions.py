"""Which words of an instruction tell one sort of task from the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from harnesslab.trainer.estimators.mining.plans import GLUE


class Conditions:
    """Separates groups of instructions. ``everyone`` are all instructions of the run: frequent words are preferred.

    ``things`` are, for each group, words that name what a single task is about; they tell no sort from another.
    """

    def __init__(
        self, groups: Sequence[Sequence[str]], everyone: Sequence[str], things: Sequence[set[str]] | None = None
    ):
        things = things if things is not None else [set() for _ in groups]
        self._common = [
            set.intersection(*(_words(text) for text in group)) - named
            for group, named in zip(groups, things, strict=True)
        ]
        self._any = [set.union(*(_words(text) for text in group)) for group in groups]
        self._count = Counter(word for text in sorted(set(everyone)) for word in _words(text))

    def separable(self, one: int, other: int) -> bool:
        """Whether a word tells the two groups apart."""
        return bool(self._common[one] - self._any[other] or self._common[other] - self._any[one])

    def pattern(self, one: int, others: Sequence[int]) -> str | None:
        """A pattern that all instructions of group ``one`` match and those of the ``others`` do not.

        A word that only the group has, else the words that the others have and it lacks. None where neither is there.
        """
        own = self._common[one].difference(*(self._any[other] for other in others))
        if others and own:
            return rf"(?i)\b{re.escape(self._most(own))}\b"
        absent = [self._common[other] - self._any[one] for other in others]
        if not absent or not all(absent):
            return None
        words = sorted({self._most(choice) for choice in absent})
        return rf"(?is)\A(?!.*\b(?:{'|'.join(map(re.escape, words))})\b)"

    def _most(self, words: set[str]) -> str:
        return min(words, key=lambda word: (-self._count[word], -len(word), word))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold())) - GLUE
