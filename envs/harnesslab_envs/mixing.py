"""An order for tasks that has nothing to do with the order in which they were published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def mixed(items: Iterable[T], family: Callable[[T], str], key: Callable[[T], str]) -> list[T]:
    """Families mixed evenly, so that the first n items hold each family in about its share.

    Within a family the order is that of a hash of ``key``: it does not change when other items come or go.
    """
    members: dict[str, list[T]] = {}
    for item in sorted(items, key=lambda item: hashlib.sha256(key(item).encode("utf-8", "surrogatepass")).hexdigest()):
        members.setdefault(family(item), []).append(item)
    placed = [
        ((place + 0.5) / len(group), name, item) for name, group in members.items() for place, item in enumerate(group)
    ]
    return [item for _, _, item in sorted(placed, key=lambda entry: entry[:2])]
