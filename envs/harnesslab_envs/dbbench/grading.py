"""Judges an episode by the rules of AgentBench's function-calling DBBench (own code, same rules).

Questions: the committed answers against the label. One value against one value, or several without
order; numbers within 0.01; a trailing ``%`` and thousands commas do not count; nothing, ``null``,
``nan`` and the like all count as 0. Several values that are not all numbers are compared as sets.

Changes: the MD5 of the resulting table against the MD5 of the table that the ground truth produces.
"""

from __future__ import annotations

import ast
import csv
import hashlib
from collections.abc import Iterable, Sequence

from harnesslab.rollout.env import JSON
from harnesslab_envs.dbbench.records import Record, Table
from harnesslab_envs.dbbench.sandbox import Sandbox, quote

TOLERANCE = 0.01
MAX_ANSWER = 100_000
"""Characters of a committed answer that are looked at; a longer one is wrong."""
_NOTHING = frozenset({"", "none", "null", "undefined", "nan", "inf", "infinity", "-inf", "-infinity"})


def answers_match(answers: JSON, label: Sequence[str]) -> bool:
    """Does what the agent committed equal the label?"""
    if len(str(answers)) > MAX_ANSWER:
        return False
    given, gold = clean_answers(answers), clean_answers(list(label))
    numbers, gold_numbers = _numbers(given), _numbers(gold)
    if numbers is not None and gold_numbers is not None:
        return _same_numbers(numbers, gold_numbers)
    if len(given) == len(gold) == 1:
        return given == gold
    return set(given) == set(gold)


def clean_answers(answers: JSON) -> list[str]:
    """The single values of an answer, normalised. A string may itself be a list, as models often send."""
    if isinstance(answers, str):
        answers = _parse_list(answers.strip())
    if not isinstance(answers, list):
        answers = [answers]
    return [normalise(_unwrap(item)) for item in answers]


def normalise(value: JSON) -> str:
    """One value as text, without the differences that do not count."""
    text = str("" if value is None else value).strip().strip("'\"").strip()
    if text.endswith("%"):
        return text[:-1].strip()
    if "," in text and not (text.startswith("[") or text.endswith("]")):
        text = text.replace(",", "")
    return "0" if text.lower() in _NOTHING else text


def table_hash(sandbox: Sandbox, tables: Iterable[Table]) -> str:
    """The published hash: five hex digits a row, sorted, joined, hashed. Empty where a table cannot be read.

    MySQL's CONCAT_WS leaves out NULL cells, and its GROUP_CONCAT gives NULL for no rows.
    """
    hashes = []
    for table in tables:
        columns = ", ".join(f"CAST({quote(column)} AS TEXT)" for column in table.columns)
        result = sandbox.execute(f"SELECT {columns} FROM {quote(table.name)}")
        if result.error:
            return ""
        rows = sorted(_md5(",".join(str(cell) for cell in row if cell is not None))[:5] for row in result.rows)
        hashes.append(_md5(",".join(rows)) if rows else "None")
    return "_".join(sorted(hashes))


def target_hashes(record: Record) -> frozenset[str]:
    """Hashes of the tables that count as right for a change.

    The published hash, and the hash of what the published statement leaves behind on SQLite, which differs
    where the engines do (a backslash in a string, for one). A statement that changes nothing here adds
    no second hash: it would make doing nothing right.
    """
    targets = {record.published_hash} - {""}
    sandbox = Sandbox(record.tables)
    try:
        before = table_hash(sandbox, record.tables)
        if not sandbox.execute(record.label[0]).error:
            targets.add(table_hash(sandbox, record.tables))
        return frozenset(targets - {before, ""})
    finally:
        sandbox.close()


def rows_hold(rows: Iterable[Sequence[object]], label: Sequence[str]) -> bool:
    """Do the cells of a result hold every value of the label? It is the evidence that a question needs."""
    cells = {normalise(cell) for row in rows for cell in row}
    numbers = [number for number in map(_number, cells) if number is not None]
    for value in clean_answers(list(label)):
        number = _number(value)
        near = number is not None and any(abs(number - other) <= TOLERANCE for other in numbers)
        if not near and value not in cells:
            return False
    return True


def _parse_list(text: str) -> JSON:
    if not (text.startswith("[") and text.endswith("]")):
        return text
    try:
        parsed = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return next(csv.reader([text[1:-1]], skipinitialspace=True), [])
    return parsed if isinstance(parsed, list) else text


def _unwrap(item: JSON) -> JSON:
    """A row of one column, ``(value,)``, stands for its value."""
    return item[0] if isinstance(item, tuple) and len(item) == 1 else item


def _numbers(values: Sequence[str]) -> list[float] | None:
    numbers = [_number(value) for value in values]
    return None if None in numbers else [number for number in numbers if number is not None]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _same_numbers(given: Sequence[float], gold: Sequence[float]) -> bool:
    """Each number has its own partner within the tolerance, found greedily in order."""
    rest = list(gold)
    for number in given:
        partner = next((i for i, other in enumerate(rest) if abs(number - other) <= TOLERANCE), None)
        if partner is None:
            return False
        del rest[partner]
    return not rest


def _md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
