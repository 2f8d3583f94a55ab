"""BM25 over a handful of short texts (Robertson and Zaragoza 2009, with the idf of Lucene, which is never negative).

Written out because the libraries for it bring NumPy, and a harness has a dozen procedures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from harnesslab.harness.actions import words

_K1, _B = 1.5, 0.75
_COMMON = """a an and are as at be by for from has have how in is it its of on or that the then this to was what
when where which who will with you your"""
_STOP = frozenset(_COMMON.split())


class BM25:
    """An index of ``texts``; scores are for all of them, in their order, 0 where no word is shared."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._bags = [Counter(_terms(text)) for text in texts]
        self._lengths = [max(1, bag.total()) for bag in self._bags]
        self._mean = sum(self._lengths) / max(1, len(self._lengths))
        count = len(self._bags)
        seen = Counter(term for bag in self._bags for term in bag)
        self._idf = {term: math.log(1 + (count - n + 0.5) / (n + 0.5)) for term, n in seen.items()}

    def scores(self, query: str) -> list[float]:
        """One score a text; a word that stands twice in the query counts once."""
        terms = [term for term in dict.fromkeys(_terms(query)) if term in self._idf]
        return [sum(self._part(index, term) for term in terms) for index in range(len(self._bags))]

    def _part(self, index: int, term: str) -> float:
        often = self._bags[index][term]
        if not often:
            return 0.0
        length = self._lengths[index] / self._mean
        return self._idf[term] * often * (_K1 + 1) / (often + _K1 * (1 - _B + _B * length))


def _terms(text: str) -> list[str]:
    """Words without the most common ones, plural s cut off."""
    found = (word for word in words(text) if word not in _STOP)
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in found]
