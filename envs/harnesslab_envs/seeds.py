"""Seeds whose episodes start differently, shared out among the splits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping

from harnesslab.rollout.env import SPLITS, Split

PATIENCE = 200
"""Seeds in a row that bring no new start before the generator is taken to have no more."""


def distinct_seeds(start: Callable[[int], Hashable], counts: Mapping[Split, int]) -> dict[Split, list[int]] | None:
    """``counts`` seeds a split, no two of which give the same ``start``; None where there are not that many.

    Seeds count up from 0. Some generators make few starts: there, two seeds can be one task, and a sealed task could
    be a search task under another number.
    """
    wanted = sum(counts.values())
    seen: set[Hashable] = set()
    found: list[int] = []
    for seed in itertools.count():
        if len(found) == wanted:
            break
        if seed - (found[-1] if found else 0) > PATIENCE:
            return None
        key = start(seed)
        if key not in seen:
            seen.add(key)
            found.append(seed)
    shares: dict[Split, list[int]] = {}
    for split in SPLITS:
        shares[split], found = found[: counts[split]], found[counts[split] :]
    return shares
