"""An in-memory SQLite database for statements that nobody has read: one connection an episode.

Nothing outside the database can be reached (no ATTACH, no extensions, no settings), a statement has a
budget of virtual-machine instructions, and what it may hold or return is bounded. The budget counts
instructions and not seconds, so that the same statement ends the same way on every machine; a deadline
stands behind it for the few functions that do much work in one instruction.
"""

from __future__ import annotations

import sqlite3
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from harnesslab_envs.dbbench.records import Table

INSTRUCTIONS = 4_000_000
"""SQLite instructions that a statement may use; joining the largest table with itself takes 200,000."""
CHECK_EVERY = 10_000
DEADLINE_S = 5.0
MAX_ROWS = 1_000
MAX_RESULT = 1_000_000
"""Rows, and characters, that are read from one result; the rest is left unread."""
MAX_PAGES = 4_096
"""Pages of 4 KiB that the database may grow to."""
MAX_QUERY = 20_000
"""Characters of one statement."""

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 20_000,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 4 * MAX_QUERY,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_READ_ONLY_PRAGMAS = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info"})
_FORBIDDEN_FUNCTIONS = frozenset(
    {
        "load_extension",  # reaches the disk
        *("random", "randomblob"),  # make a trajectory differ from run to run
        *("printf", "format", "zeroblob"),  # unbounded work within one instruction, where no budget is looked at
        *("json_group_array", "json_group_object"),  # grow past SQLite's limits until they are done
    }
)
_ALLOWED = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_DELETE,
        sqlite3.SQLITE_CREATE_TABLE,
        sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_DROP_INDEX,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_DROP_VIEW,
        sqlite3.SQLITE_REINDEX,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
    }
)

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave: its rows, or ``error`` in words."""

    rows: tuple[Row, ...] = ()
    error: str = ""


class Sandbox:
    """A fresh database that holds ``tables``. Not thread-safe; close it when done."""

    def __init__(self, tables: Sequence[Table]):
        self._spent = 0
        self._deadline = 0.0
        # The runner may play an episode on another thread than the one that made the instance.
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._connection.create_collation("mysql", compare_as_mysql)
        for table in tables:
            self._load(table)
        self._connection.execute(f"PRAGMA max_page_count = {MAX_PAGES}")
        self._connection.execute("PRAGMA trusted_schema = OFF")
        for limit, value in _LIMITS.items():
            self._connection.setlimit(limit, value)
        self._connection.set_authorizer(_authorize)
        self._connection.set_progress_handler(self._tick, CHECK_EVERY)

    def execute(self, query: str) -> Result:
        """Run one statement. Never raises for what the statement does; changes are kept at once."""
        if len(query) > MAX_QUERY:
            return Result(error=f"the statement is longer than {MAX_QUERY} characters")
        self._spent, self._deadline = 0, time.monotonic() + DEADLINE_S
        try:
            cursor = self._connection.execute(query)
            rows = _read_rows(cursor)
            cursor.close()
            if self._connection.in_transaction:
                # AgentBench's connection commits after each statement, so a BEGIN never stays open.
                self._connection.commit()
            return Result(rows)
        # sqlite3.Warning (two statements at once, on Python 3.11) is no sqlite3.Error; ValueError: NUL, lone surrogate.
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            if self._connection.in_transaction:
                self._connection.rollback()
            return Result(error=self._explain(error))

    def close(self) -> None:
        """Drop the database. Safe to call twice."""
        self._connection.close()

    def _load(self, table: Table) -> None:
        columns = ", ".join(f"{quote(column)} TEXT COLLATE mysql" for column in table.columns)
        self._connection.execute(f"CREATE TABLE {quote(table.name)} ({columns})")
        places = ", ".join("?" * len(table.columns))
        self._connection.execute("BEGIN")
        self._connection.executemany(f"INSERT INTO {quote(table.name)} VALUES ({places})", table.rows)
        self._connection.execute("COMMIT")

    def _tick(self) -> bool:
        self._spent += CHECK_EVERY
        return self._spent > INSTRUCTIONS or time.monotonic() > self._deadline

    def _explain(self, error: BaseException) -> str:
        text = str(error) or type(error).__name__
        if text == "interrupted":
            return "the statement did too much work and was stopped"
        if "prohibited" in text or "authoriz" in text:
            return f"{text} (only statements on the tables of this database are possible)"
        return text


def _read_rows(cursor: sqlite3.Cursor) -> tuple[Row, ...]:
    rows: list[Row] = []
    size = 0
    for row in cursor:
        rows.append(row)
        size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
        if len(rows) >= MAX_ROWS or size >= MAX_RESULT:
            break
    return tuple(rows)


def quote(identifier: str) -> str:
    """An identifier in SQL, quoted."""
    return '"' + identifier.replace('"', '""') + '"'


def compare_as_mysql(left: str, right: str) -> int:
    """Order two strings without regard to case and accents, like MySQL's default collation."""
    a, b = (_short_key(text) if len(text) <= 100 else _collation_key(text) for text in (left, right))
    return (a > b) - (a < b)


def _collation_key(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c)).casefold()


_short_key = lru_cache(maxsize=16_384)(_collation_key)


def _authorize(action: int, first: str | None, second: str | None, database: str | None, _source: str | None) -> int:
    """SQLite's authorizer: allow what works on the tables, deny the rest."""
    if action in _ALLOWED:
        allowed = database != "temp"
    elif action == sqlite3.SQLITE_FUNCTION:
        allowed = (second or "").lower() not in _FORBIDDEN_FUNCTIONS
    elif action == sqlite3.SQLITE_PRAGMA:
        allowed = (first or "").lower() in _READ_ONLY_PRAGMAS
    else:
        allowed = False
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
