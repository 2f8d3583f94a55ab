"""Fixed splits: the published dev file goes to ``search``, the standard file is divided family by family.

AgentBench's training file is not public in full, so the 300 standard tasks are split. Within each
family the order is that of a hash of the task's text, which has nothing to do with the order in the file
(neighbours there come from one source) and does not change when another family does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from harnesslab.rollout.env import SPLITS, Split, Task
from harnesslab_envs.dbbench.records import Record

SEALED_SHARE = 0.6
GATE_SHARE = 0.24
"""Of each family of the standard file; what remains goes to ``search``. 60 % seals 60 of the 100 questions."""


def divide(records: Iterable[Record], all_search: str = "dev-") -> dict[Split, tuple[Task, ...]]:
    """Tasks by split; records whose id starts with ``all_search`` are all ``search``."""
    splits: dict[Split, list[Record]] = {split: [] for split in SPLITS}
    families: dict[str, list[Record]] = {}
    for record in records:
        if record.id.startswith(all_search):
            splits["search"].append(record)
        else:
            families.setdefault(record.family, []).append(record)
    for family in sorted(families):
        members = sorted(families[family], key=_shuffle_key)
        sealed = round(len(members) * SEALED_SHARE)
        gate = sealed + round(len(members) * GATE_SHARE)
        splits["sealed"] += members[:sealed]
        splits["gate"] += members[sealed:gate]
        splits["search"] += members[gate:]
    return {split: tuple(as_task(record, split) for record in mixed(chosen)) for split, chosen in splits.items()}


def as_task(record: Record, split: Split) -> Task:
    """The task that plays ``record``."""
    return Task(id=record.id, split=split, family=record.family, options={"record": record.id})


def _shuffle_key(record: Record) -> str:
    return hashlib.sha256(record.instruction.encode("utf-8", "surrogatepass")).hexdigest()


def mixed(records: Iterable[Record]) -> list[Record]:
    """Families mixed evenly, so that the first n tasks of a split hold each family in about its share."""
    members: dict[str, list[Record]] = {}
    for record in sorted(records, key=_shuffle_key):
        members.setdefault(record.family, []).append(record)
    placed = [
        ((place + 0.5) / len(group), family, record)
        for family, group in members.items()
        for place, record in enumerate(group)
    ]
    return [record for _, _, record in sorted(placed, key=lambda entry: entry[:2])]
