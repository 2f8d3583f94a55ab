"""The shop's search: BM25 as in Lucene, on the same parts of a product and with the same settings as published."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence

import bm25s
import numpy as np
import Stemmer

from harnesslab_envs.webshop.markup import plain
from harnesslab_envs.webshop.records import Product

K1, B = 0.9, 0.4
"""Of Pyserini, through which the published shop asks Lucene."""
FOUND = 50
"""Products that a search finds at most."""

# What Lucene's English analyzer leaves out.
_COMMON = """a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
to was will with"""
_STOP = frozenset(_COMMON.split())
_TOKEN = re.compile(r"\w+(?:(?:(?<=\d)[.,'](?=\d)|(?<=[^\W\d])[.'’:](?=[^\W\d]))\w+)*")


class Index:
    """An index over products; finds them by their place. Reading it from several threads is safe."""

    def __init__(self, products: Iterable[Product]):
        self._stemmer = Stemmer.Stemmer("porter", 0)
        self._lock = threading.Lock()
        self._ids: dict[str, int] = {}
        bags = [[self._ids.setdefault(term, len(self._ids)) for term in self.terms(_text(one))] for one in products]
        self._index = None
        if self._ids:
            self._index = bm25s.BM25(k1=K1, b=B, method="lucene")
            self._index.index((bags, self._ids), show_progress=False, create_empty_token=False)

    def find(self, words: str, limit: int = FOUND) -> list[int]:
        """The places of the best products, best first; those that are as good in the order of the catalogue."""
        known = [self._ids[term] for term in self.terms(words) if term in self._ids]
        if self._index is None or not known:
            return []
        scores = self._index.get_scores_from_ids(known)
        best = np.argsort(-scores, kind="stable")[:limit]
        return [int(place) for place in best if scores[place] > 0]

    def terms(self, text: str) -> Sequence[str]:
        """Lower-case words without the most common ones, each cut to its stem."""
        words = (word.removesuffix("'s").removesuffix("’s") for word in _TOKEN.findall(text.lower()))
        kept = [word for word in words if word not in _STOP]
        # A stemmer serves one thread at a time.
        with self._lock:
            stems: list[str] = self._stemmer.stemWords(kept)
        return stems


def _text(product: Product) -> str:
    """What is searched: title, description, the first feature, and the options."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in product.options.items())
    return " ".join([product.title, plain(product.description), *product.features[:1], options])
