"""Our own small tables and questions, played and judged by the code of ``dbbench``: the environment ``tables``.

It needs no data from elsewhere, so that tutorials and tests run where DBBench is absent. Four tables, 24 tasks
a split: questions (other, counting, comparison, ranking, aggregation) and changes. Names hold spaces,
brackets, dots, leading digits and reserved words, and all cells are text, as in DBBench. The answers are
worked out from the rows in Python, not with SQL.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from harnesslab.rollout.env import SPLITS, Split
from harnesslab_envs.dbbench.env import Content, TableTasks
from harnesslab_envs.dbbench.records import Record, Table
from harnesslab_envs.dbbench.sandbox import quote
from harnesslab_envs.dbbench.splits import as_task, mixed

PER_KIND = 3
"""Tasks that a table gives of each kind: one for each split."""

_Question = tuple[str, str, tuple[str, ...]]
"""family, question, label"""


@dataclass(frozen=True, slots=True)
class _Source:
    """One table with what its columns mean."""

    table: Table
    key: str
    group: str
    text: str
    numbers: tuple[str, ...]
    new: tuple[str, ...]
    changed: str

    @classmethod
    def read(cls, data: dict[str, Any]) -> _Source:
        roles = data["roles"]
        table = Table(data["name"], tuple(data["columns"]), tuple(map(tuple, data["rows"])))
        new, numbers = tuple(data["new"]), tuple(roles["numbers"])
        return cls(table, roles["key"], roles["group"], roles["text"], numbers, new, data["changed"])

    def values(self, column: str) -> list[str]:
        place = self.table.columns.index(column)
        return [row[place] for row in self.table.rows]

    def pairs(self, column: str) -> list[tuple[str, str]]:
        """(key, value of the column), row by row."""
        return list(zip(self.values(self.key), self.values(column), strict=True))


def environment() -> TableTasks:
    """The environment ``tables``: 24 tasks a split, nothing to fetch."""
    return TableTasks("tables", _content)


def _content() -> Content:
    raw = Path(__file__).with_name("tables.json").read_bytes()
    chosen: dict[Split, list[Record]] = {split: [] for split in SPLITS}
    records: dict[str, Record] = {}
    kinds = (_other, _counting, _comparison, _ranking, _aggregation, _change)
    for place, kind in enumerate(kinds):
        for number, source in enumerate(map(_Source.read, json.loads(raw))):
            draw = random.Random(f"{source.table.name}/{kind.__name__}")
            for index, question in enumerate(islice(kind(source, draw), PER_KIND)):
                record = _record(source, question, f"tables-{number}{place}{index}")
                records[record.id] = record
                # The shift lets each split have its turn with each sort of aggregation and change.
                chosen[SPLITS[(index + number + place) % len(SPLITS)]].append(record)
    splits = {split: tuple(as_task(record, split) for record in mixed(members)) for split, members in chosen.items()}
    return Content(records, splits, f"1+{hashlib.sha256(raw).hexdigest()[:8]}")


def _record(source: _Source, question: _Question, record_id: str) -> Record:
    family, text, label = question
    table = source.table
    about = f"The name of this table is {table.name}, and the headers of this table are {','.join(table.columns)}."
    return Record(record_id, family, text, about, (table,), label)


def _other(source: _Source, draw: random.Random) -> Iterator[_Question]:
    for key, value in draw.sample(source.pairs(source.text), PER_KIND):
        yield "other", f"What is the {source.text} of the {source.key} {key}?", (value,)


def _counting(source: _Source, draw: random.Random) -> Iterator[_Question]:
    values = source.values(source.group)
    for value in draw.sample(sorted(set(values)), PER_KIND):
        question = f"How many rows have {value} as their {source.group}?"
        yield "counting", question, (str(values.count(value)),)


def _comparison(source: _Source, draw: random.Random) -> Iterator[_Question]:
    for column, _ in _turns(source):
        (one, first), (other, second) = draw.sample(source.pairs(column), 2)
        winner = one if int(first) > int(second) else other
        yield "comparison", f"Which {source.key} has the higher {column}, {one} or {other}?", (winner,)


def _ranking(source: _Source, draw: random.Random) -> Iterator[_Question]:
    places = draw.sample([("second", 1), ("third", 2), ("fourth", 3), ("fifth", 4)], PER_KIND)
    for (word, place), (column, _) in zip(places, _turns(source), strict=False):
        ranked = sorted(source.pairs(column), key=lambda pair: -int(pair[1]))
        yield "ranking", f"Which {source.key} has the {word} highest {column}?", (ranked[place][0],)


def _aggregation(source: _Source, draw: random.Random) -> Iterator[_Question]:
    groups = draw.sample(sorted(set(source.values(source.group))), PER_KIND)
    sorts: list[tuple[str, str, Callable[[list[int]], float]]] = [
        ("SUM", "sum", sum),
        ("MAX", "maximum", max),
        ("AVG", "average", lambda numbers: sum(numbers) / len(numbers)),
    ]
    for (family, word, work), group, (column, values) in zip(sorts, groups, _turns(source), strict=False):
        members = [value for value, of in zip(values, source.values(source.group), strict=True) if of == group]
        question = f"What is the {word} of {column} over all rows with {group} as their {source.group}?"
        yield f"aggregation-{family}", question, (f"{work(members):g}",)


def _change(source: _Source, draw: random.Random) -> Iterator[_Question]:
    table = quote(source.table.name)
    row = ", ".join(f"{column} {value}" for column, value in zip(source.table.columns, source.new, strict=True))
    values = ", ".join(map(_literal, source.new))
    yield "INSERT", f"Add a row to the table: {row}.", (f"INSERT INTO {table} VALUES ({values})",)
    for key in draw.sample(source.values(source.key), PER_KIND - 1):
        change = f"SET {quote(source.text)} = {_literal(source.changed)} WHERE {quote(source.key)} = {_literal(key)}"
        yield (
            "UPDATE",
            f"Change the {source.text} of the {source.key} {key} to {source.changed}.",
            (f"UPDATE {table} {change}",),
        )


def _turns(source: _Source) -> Iterator[tuple[str, list[int]]]:
    """The number columns with their values, in turn, for ever."""
    while True:
        for column in source.numbers:
            yield column, [int(value) for value in source.values(column)]


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
