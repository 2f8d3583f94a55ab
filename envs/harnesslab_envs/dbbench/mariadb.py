"""The tables on a private MariaDB, judged by the published hashes alone.

Each episode has a database and a user of its own with rights on that database only: no files, no settings of the
server, no other database. A statement has a deadline, after which the server ends it, and what is read of its result
is bounded.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harnesslab_envs.dbbench.records import Record, Table
from harnesslab_envs.dbbench.sandbox import MAX_QUERY, MAX_RESULT, MAX_ROWS, Result, Row
from harnesslab_envs.dbbench.server import Server, server_version

DEADLINE_S = 5
RIGHTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, CREATE VIEW"


class MariaDB:
    """One server for all databases of an environment, started with the first of them."""

    name, starter = "MariaDB", Path(__file__).parent / "starter-mariadb"

    def __init__(self) -> None:
        self._server: Server | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def tag(self) -> str:
        """See :class:`harnesslab_envs.dbbench.engines.Engine`."""
        return f".mariadb{server_version()}"

    def open(self, tables: Sequence[Table]) -> MariaDatabase:
        """See :class:`harnesslab_envs.dbbench.engines.Engine`."""
        with self._lock:
            if self._server is not None and not self._server.answers():
                self._server.close()
                self._server = None
            if self._server is None:
                self._server = Server()
            number = next(self._numbers)
        return MariaDatabase(self._server, f"task_{number}", tables)

    def targets(self, record: Record) -> frozenset[str]:
        """The published hash, and no other."""
        return frozenset({record.published_hash} - {""})

    def gold(self, record: Record) -> str:
        """The published statement."""
        return record.label[0]

    def close(self) -> None:
        """End the server."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()


class MariaDatabase:
    """A fresh database that holds ``tables``. Not thread-safe; close it when done."""

    def __init__(self, server: Server, name: str, tables: Sequence[Table]):
        self._server, self._name = server, name
        self._connection: Any = None
        self._root = server.connect()
        try:
            self._tell(f"CREATE DATABASE {name}")
            self._root.select_db(name)
            for table in tables:
                columns = ", ".join(f"{column} TEXT" for column in _columns(table))
                self._tell(f"CREATE TABLE {quote(table.name)} ({columns})")
                places = ", ".join(["%s"] * len(table.columns))
                insert = f"INSERT INTO {quote(table.name).replace('%', '%%')} VALUES ({places})"
                with self._root.cursor() as cursor:
                    cursor.executemany(insert, table.rows)
        except BaseException:
            self.close()
            raise

    def execute(self, query: str) -> Result:
        """Run one statement as the agent's user. Never raises for what the statement does."""
        import pymysql

        if len(query) > MAX_QUERY:
            return Result(error=f"the statement is longer than {MAX_QUERY} characters")
        connection = self._connection or self._connect()
        cursor = connection.cursor(pymysql.cursors.SSCursor)
        try:
            cursor.execute(query)
            rows, whole = _read_rows(cursor)
            if not whole:
                # The client reads a result to its end before it goes on; that end is now an error.
                self._tell(f"KILL QUERY {connection.thread_id()}")
            with contextlib.suppress(pymysql.err.OperationalError):
                cursor.close()
            # A BEGIN never stays open, as in AgentBench.
            connection.commit()
            return Result(rows)
        except pymysql.err.OperationalError as error:
            # 2013: no answer in time; others are answers, and the connection goes on.
            if error.args[0] in (2006, 2013):
                self._hang_up()
                if cursor._result is not None:
                    # Else the client tries to read the rest from the closed connection when this is collected.
                    cursor._result.unbuffered_active = False
                return Result(error="the statement did too much work and was stopped")
            return Result(error=_words(error))
        except (pymysql.err.Error, UnicodeError, ValueError, OverflowError) as error:
            return Result(error=_words(error))
        except BaseException:
            self._hang_up()
            raise

    def hash(self, tables: Sequence[Table]) -> str:
        """See :class:`harnesslab_envs.dbbench.engines.Database`: the published statement, run by us."""
        import pymysql

        hashes = []
        for table in tables:
            columns = ", ".join(_columns(table))
            rows = f"SELECT SUBSTRING(MD5(CONCAT_WS(',', {columns})), 1, 5) AS rowhash FROM {quote(table.name)}"
            try:
                with self._root.cursor() as cursor:
                    cursor.execute(f"SELECT MD5(GROUP_CONCAT(rowhash ORDER BY rowhash)) FROM ({rows}) AS sub")
                    hashes.append(str(cursor.fetchone()[0]))
            except pymysql.err.Error:
                return ""
        return "_".join(sorted(hashes))

    def close(self) -> None:
        """Drop the database and its user. Safe to call twice."""
        if self._root is None:
            return
        import pymysql

        self._hang_up()
        # Where the server has ended, so has all of that.
        with contextlib.suppress(pymysql.err.Error, OSError):
            self._tell(f"DROP DATABASE IF EXISTS {self._name}")
            self._tell(f"DROP USER IF EXISTS {self._name}@localhost")
            self._root.close()
        self._root = None

    def _connect(self) -> Any:
        # Made anew, as it may have changed its own password.
        self._tell(f"CREATE OR REPLACE USER {self._name}@localhost")
        self._tell(f"GRANT {RIGHTS} ON {self._name}.* TO {self._name}@localhost")
        self._connection = self._server.connect(self._name, database=self._name, read_timeout=DEADLINE_S)
        return self._connection

    def _hang_up(self) -> None:
        """End the agent's connection, and what it still runs."""
        import pymysql

        connection, self._connection = self._connection, None
        if connection is None:
            return
        # Either may have ended by itself.
        with contextlib.suppress(pymysql.err.Error, OSError):
            self._tell(f"KILL HARD CONNECTION {connection.thread_id()}")
        with contextlib.suppress(pymysql.err.Error, OSError):
            connection.close()

    def _tell(self, statement: str) -> None:
        with self._root.cursor() as cursor:
            cursor.execute(statement)


def quote(identifier: str) -> str:
    """An identifier in MariaDB's SQL, quoted."""
    return "`" + identifier.replace("`", "``") + "`"


def _columns(table: Table) -> list[str]:
    """The names in SQL; one that is empty, which only SQLite takes, is ``column_1`` and the like."""
    return [quote(column or f"column_{place}") for place, column in enumerate(table.columns, start=1)]


def _read_rows(cursor: Any) -> tuple[tuple[Row, ...], bool]:
    """The first rows of a result, and whether these are all."""
    rows: list[Row] = []
    size = 0
    row: Row
    for row in _rows(cursor):
        rows.append(row)
        size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
        if len(rows) >= MAX_ROWS or size >= MAX_RESULT:
            return tuple(rows), False
    return tuple(rows), True


def _rows(cursor: Any) -> Iterator[Row]:
    while cursor.description is not None and (row := cursor.fetchone()) is not None:
        yield tuple(row)


def _words(error: BaseException) -> str:
    return str(error.args[1] if len(error.args) > 1 else error) or type(error).__name__
