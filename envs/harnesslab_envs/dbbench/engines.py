"""What the tables of a task live in: SQLite in this process, or MariaDB, which the published hashes come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from harnesslab_envs.dbbench.grading import table_hash, target_hashes
from harnesslab_envs.dbbench.records import Record, Table
from harnesslab_envs.dbbench.sandbox import Result, Sandbox, quote

_HERE = Path(__file__).parent


class Database(Protocol):
    """One episode's tables."""

    def execute(self, query: str) -> Result:
        """Run one statement of the agent; never raises for what it does."""
        ...

    def close(self) -> None:
        """Drop it. Safe to call twice."""
        ...

    def hash(self, tables: Sequence[Table]) -> str:
        """The tables' content by the published rule; empty where they cannot be read."""
        ...


class Engine(Protocol):
    """Makes databases. ``name`` is what the agent is told; ``tag`` is what it adds to the environment's version."""

    name: str
    starter: Path

    @property
    def tag(self) -> str:
        """Raises EnvironmentUnavailable where the engine is missing."""
        ...

    def open(self, tables: Sequence[Table]) -> Database:
        """A fresh database with these tables."""
        ...

    def targets(self, record: Record) -> frozenset[str]:
        """The hashes that count as right for a change."""
        ...

    def gold(self, record: Record) -> str:
        """The published statement of a change, as this engine takes it."""
        ...


class SQLiteDatabase(Sandbox):
    """:class:`Sandbox` with its hash."""

    def hash(self, tables: Sequence[Table]) -> str:
        """See :class:`Database`."""
        return table_hash(self, tables)


class SQLite:
    """In memory, in this process."""

    name, tag, starter = "SQLite", "", _HERE / "starter"

    def open(self, tables: Sequence[Table]) -> Database:
        """See :class:`Engine`."""
        return SQLiteDatabase(tables)

    def targets(self, record: Record) -> frozenset[str]:
        """See :class:`Engine`."""
        return target_hashes(record)

    def gold(self, record: Record) -> str:
        """A table name that only MySQL takes unquoted (it starts with a digit) is quoted."""
        statement, name = record.label[0], record.tables[0].name
        if name[:1].isdigit() and f"`{name}`" not in statement:
            return statement.replace(name, quote(name), 1)
        return statement
