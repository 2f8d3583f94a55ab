"""The record database of a lab: its tables, their versions, and one sentence for each kind of trouble."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from harnesslab.errors import StoreError

BUSY_S = 5.0
"""How long a write waits for another notebook's write, in seconds."""

_V1 = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, "commit" TEXT NOT NULL, identity TEXT NOT NULL, identity_hash TEXT NOT NULL,
  split TEXT NOT NULL,
  purpose TEXT NOT NULL, backbone TEXT NOT NULL, created REAL NOT NULL, finished REAL, status TEXT NOT NULL,
  meta TEXT NOT NULL
);
CREATE INDEX runs_by_measurement ON runs ("commit", identity_hash, created);
CREATE TABLE episodes (
  id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, task_id TEXT NOT NULL, family TEXT NOT NULL, repeat INTEGER NOT NULL,
  seed INTEGER NOT NULL, solved INTEGER NOT NULL, reward REAL, progress REAL, steps INTEGER NOT NULL,
  invalid INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, seconds REAL, status TEXT NOT NULL, owner TEXT NOT NULL,
  label TEXT NOT NULL, fired TEXT NOT NULL, extra TEXT NOT NULL
);
CREATE UNIQUE INDEX episodes_by_task ON episodes (run_id, task_id, repeat, seed);
CREATE TABLE traces (episode_id INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE events (id INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX events_by_kind ON events (kind, id);
CREATE TABLE journal (
  epoch INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (epoch, key)
);
CREATE TABLE progress (
  id TEXT PRIMARY KEY, what TEXT NOT NULL, done INTEGER NOT NULL, total INTEGER, updated REAL NOT NULL,
  meta TEXT NOT NULL
);
"""

MIGRATIONS: tuple[str, ...] = (_V1,)
"""Script number n (from 1) brings a database from version n-1 to n. Never edit one that was released."""


_TABLES = ("runs", "episodes", "traces", "events", "journal", "progress")


def connect(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open or create the database; returns it and whether it can only be read.

    A database in a read-only folder opens for reading. One from a newer harnesslab is a `StoreError`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=BUSY_S, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA trusted_schema=OFF")  # the file may have come with somebody else's lab
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            _migrate(db, path)
            for table in _TABLES:
                db.execute(f"SELECT 1 FROM {table} LIMIT 1")
        except BaseException:
            db.close()
            raise
        return db, False
    except (sqlite3.Error, OSError) as error:
        if path.exists() and is_read_only(error):
            return _connect_read_only(path), True
        raise explain(error, path) from None


def explain(error: Exception, path: Path) -> StoreError:
    """One sentence for what SQLite or the operating system said."""
    text = getattr(error, "strerror", None) or str(error)
    if "locked" in text or "busy" in text:
        message = f"Another process keeps writing to {path} (waited {BUSY_S:g} s); try again, or stop it."
        return StoreError(message, cause="locked")
    if "full" in text or "No space" in text:
        return StoreError(f"The disk is full: {path} cannot be written; free some space and try again.", cause="full")
    if is_read_only(error):
        message = f"{path} is read-only for this user; make its folder writable or copy the lab."
        return StoreError(message, cause="read_only")
    if any(
        word in text for word in ("malformed", "not a database", "no such table", "already exists", "no such column")
    ):
        return StoreError(
            f"{path} is damaged; move it away (the harness and its verdicts are in git) or restore a copy.",
            cause="corrupt",
        )
    return StoreError(f"{path} cannot be used: {text}.")


def is_read_only(error: Exception) -> bool:
    """Was it the lack of a right to write?"""
    text = getattr(error, "strerror", None) or str(error)
    return any(word in text for word in ("readonly", "Read-only", "Permission denied", "unable to open"))


def version(db: sqlite3.Connection) -> int:
    """The version of the tables in a database; 0 when it has none."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    _refuse_newer(db, path)
    if version(db) == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")  # two notebooks may open a new lab at the same time
    try:
        db.execute("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, at REAL NOT NULL)")
        for number in range(version(db) + 1, len(MIGRATIONS) + 1):
            for statement in MIGRATIONS[number - 1].split(";\n"):
                if statement.strip():
                    db.execute(statement)
            db.execute("INSERT INTO migrations VALUES (?, ?)", (number, time.time()))
            db.execute(f"PRAGMA user_version={number}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _refuse_newer(db: sqlite3.Connection, path: Path) -> None:
    if version(db) < 0:
        raise sqlite3.DatabaseError("malformed version")
    if version(db) > len(MIGRATIONS):
        raise StoreError(
            f"{path} was written by a newer harnesslab (format {version(db)}, this one knows {len(MIGRATIONS)}); "
            "upgrade harnesslab.",
            cause="newer_database",
        )


def _connect_read_only(path: Path) -> sqlite3.Connection:
    name = path.resolve().as_uri()
    error: Exception = StoreError("")
    for options in ("mode=ro", "mode=ro&immutable=1"):  # without a right to make the -shm file only 'immutable' works
        try:
            db = sqlite3.connect(
                f"{name}?{options}", uri=True, timeout=BUSY_S, check_same_thread=False, isolation_level=None
            )
            _refuse_newer(db, path)
            db.execute("SELECT count(*) FROM runs").fetchone()
            return db
        except sqlite3.Error as failure:
            error = failure
    raise explain(error, path)


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One write transaction; anything raised inside undoes all of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
        raise
