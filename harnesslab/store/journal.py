"""The smaller records of a lab: events, the journal of an epoch, and progress for whoever watches."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harnesslab.store.codec import from_json, to_json
from harnesslab.store.database import connect, explain, transaction

_NOTE = "INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?)"


class Journal:
    """Events, journal and progress in one record database; `RunStore` adds the runs."""

    def __init__(self, path: Path):
        self.path = path
        self._guard = threading.RLock()
        self._db, self.read_only = connect(path)

    def add_event(self, kind: str, data: Mapping[str, Any]) -> int:
        """Record that something happened (a sealed split opened, a decision); returns its number."""
        with self._writing() as db:
            number = db.execute(
                "INSERT INTO events (at, kind, data) VALUES (?, ?, ?)", (time.time(), kind, to_json(data))
            ).lastrowid
        assert number is not None
        return number

    def events(self, kind: str | None = None, *, offset: int = 0, limit: int = 1000) -> list[dict[str, Any]]:
        """Events, newest first: dicts of id, at (seconds since 1970), kind, data."""
        where, values = ("WHERE kind = ?", (kind,)) if kind else ("", ())
        rows = self._read(
            f"SELECT id, at, kind, data FROM events {where} ORDER BY id DESC LIMIT ? OFFSET ?", (*values, limit, offset)
        )
        return [{"id": row[0], "at": row[1], "kind": row[2], "data": from_json(row[3])} for row in rows]

    def journal_put(self, epoch: int, key: str, value: Any) -> None:
        """Note how far an epoch has come; the same key replaces its earlier value. `value` is any JSON value."""
        with self._writing() as db:
            db.execute(_NOTE, (epoch, key, to_json(value), time.time()))

    def journal_get(self, epoch: int, key: str, default: Any = None) -> Any:
        """What `journal_put` noted, or `default`."""
        rows = self._read("SELECT value FROM journal WHERE epoch = ? AND key = ?", (epoch, key))
        return from_json(rows[0][0]) if rows else default

    def journal(self, epoch: int) -> dict[str, Any]:
        """Everything noted of an epoch."""
        return {
            key: from_json(value)
            for key, value in self._read("SELECT key, value FROM journal WHERE epoch = ?", (epoch,))
        }

    def journal_swap(self, epoch: int, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Note what ``change`` makes of everything noted of an epoch, while nobody else writes; if it raises, nothing."""
        with self._writing() as db:
            rows = db.execute("SELECT key, value FROM journal WHERE epoch = ?", (epoch,)).fetchall()
            for key, value in change({key: from_json(value) for key, value in rows}).items():
                db.execute(_NOTE, (epoch, key, to_json(value), time.time()))

    def set_progress(
        self, key: str, what: str, done: int, total: int | None, meta: Mapping[str, Any] | None = None
    ) -> None:
        """Say what is being measured and how far it is, for whoever watches from outside."""
        with self._writing() as db:
            row = (key, what, done, total, time.time(), to_json(dict(meta or {})))
            db.execute("INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?, ?, ?)", row)

    def clear_progress(self, key: str) -> None:
        """The work is over; forget its progress."""
        with self._writing() as db:
            db.execute("DELETE FROM progress WHERE id = ?", (key,))

    def progress(self) -> list[dict[str, Any]]:
        """What is going on: dicts of key, what, done, total, updated (seconds since 1970), meta; latest first."""
        rows = self._read("SELECT id, what, done, total, updated, meta FROM progress ORDER BY updated DESC", ())
        names = ("key", "what", "done", "total", "updated")
        return [{**dict(zip(names, row[:5], strict=True)), "meta": from_json(row[5])} for row in rows]

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        try:
            with self._guard:
                return self._db.execute(sql, values).fetchall()
        except (sqlite3.Error, OverflowError) as error:
            raise explain(error, self.path) from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._guard, transaction(self._db):
                yield self._db
        except (sqlite3.Error, OverflowError) as error:
            raise explain(error, self.path) from None
