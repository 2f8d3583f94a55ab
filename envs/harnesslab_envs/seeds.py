"""Seeds whose episodes start differently, shared out among the splits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from harnesslab.rollout.env import SPLITS, Split

TRIES = 50
"""Seeds that are tried for each one that is wanted."""


def distinct_seeds(start: Callable[[int], Hashable], counts: Mapping[Split, int]) -> dict[Split, list[int]] | None:
    """``counts`` seeds a split, no two of which give the same ``start``; None where there are not that many.

    Seeds count up from 0. Some generators make few starts: there, two seeds can be one task, and a sealed task could
    be a search task under another number.
    """
    wanted = sum(counts.values())
    seen: set[Hashable] = set()
    found: list[int] = []
    for seed in range(wanted * TRIES):
        key = start(seed)
        if key not in seen:
            seen.add(key)
            found.append(seed)
        if len(found) == wanted:
            break
    else:
        return None
    shares: dict[Split, list[int]] = {}
    for split in SPLITS:
        shares[split], found = found[: counts[split]], found[counts[split] :]
    return shares
