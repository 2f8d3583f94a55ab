"""A SQLite index over the candidates, so that listing thousands takes milliseconds. Git is the truth.

The index is brought up to date from git before every use. Whether anything changed is seen from the
time stamps of the folders that hold the refs (git replaces a ref by renaming a file into its folder)
and of `packed-refs`. It lives inside the git folder, and may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from harnesslab.errors import StoreError
from harnesslab.store.candidates import Candidate, Filter, Order, Page, build
from harnesslab.store.git import Git
from harnesslab.store.notes import changed_notes, parse_note, read_note
from harnesslab.store.objects import read_commits
from harnesslab.store.ownfiles import refuse_links
from harnesslab.store.refs import FOLDERS, NOTES, State, is_id

_VERSION = 2
_RACY_NS = 50_000_000  # stamps younger than this when taken cannot tell two changes apart
_CHUNK = 2_000
_FILES = ("", "-wal", "-shm")
_MANY_NEW = 20  # from here on, listing all notes is cheaper than looking up each

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS candidates (
  id TEXT PRIMARY KEY, commit_id TEXT NOT NULL, parent TEXT NOT NULL, state TEXT NOT NULL, subject TEXT NOT NULL,
  created REAL NOT NULL, meta TEXT NOT NULL, verdict TEXT, layer TEXT, kind TEXT, estimator TEXT, reason TEXT,
  decided_by TEXT, decided_at REAL, delta REAL, search TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_time ON candidates (created, id);
CREATE INDEX IF NOT EXISTS by_state ON candidates (state, created, id);
CREATE INDEX IF NOT EXISTS by_delta ON candidates (delta, id);
CREATE INDEX IF NOT EXISTS by_commit ON candidates (commit_id);
CREATE INDEX IF NOT EXISTS by_ref ON candidates (id, state, commit_id);
"""

_COLUMNS = (
    "id, commit_id, parent, state, subject, created, meta, verdict, "
    "layer, kind, estimator, reason, decided_by, decided_at, delta"
)
_INSERT = f"INSERT OR REPLACE INTO candidates VALUES ({','.join('?' * 16)})"
_ORDERS: dict[str, str] = {
    "time": "created DESC, id DESC",
    "-time": "created, id",
    "delta": "delta IS NULL, delta DESC, id DESC",
    "-delta": "delta IS NULL, delta, id DESC",
    "decided": "decided_at IS NULL, decided_at DESC, id DESC",
}
_PRECEDENCE: tuple[State, ...] = ("pending", "rejected", "promoted")  # the later one wins while a move is unfinished

_T = TypeVar("_T")


class CandidateIndex:
    """Answers listings for one repository; safe to use from several threads."""

    def __init__(self, git: Git, git_dir: Path):
        self.git, self.git_dir = git, git_dir
        self._path = git_dir / "harnesslab" / "index.db"
        self._guard = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._compared = False

    def close(self) -> None:
        """Close the database file."""
        with self._guard:
            if self._db is not None:
                self._db.close()
                self._db = None

    def page(self, wanted: Filter, order: Order = "time", offset: int = 0, limit: int = 50) -> Page:
        """One page of the candidates that match, and how many match in all."""
        if order not in _ORDERS:
            raise StoreError(f"Candidates can be ordered by {' or '.join(map(repr, _ORDERS))}, not by {order!r}.")
        where, values = _where(wanted)
        rows_sql = f"SELECT {_COLUMNS} FROM candidates {where} ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"

        def ask(db: sqlite3.Connection) -> Page:
            total = db.execute(f"SELECT count(*) FROM candidates {where}", values).fetchone()[0]
            rows = db.execute(rows_sql, [*values, max(0, limit), max(0, offset)]).fetchall()
            return Page(total, [_candidate(row) for row in rows])

        return self._ask(ask)

    def by_commit(self, commit: str) -> Candidate | None:
        """The candidate whose commit has this id, or an id that starts like this, if there is one."""
        where = "commit_id >= ?1 AND commit_id < ?1 || 'g'"
        row = self._ask(lambda db: db.execute(f"SELECT {_COLUMNS} FROM candidates WHERE {where}", (commit,)).fetchone())
        return _candidate(row) if row else None

    def counts(self) -> dict[str, int]:
        """How many candidates each state has (states without any are absent)."""
        return self._ask(
            lambda db: dict(db.execute("SELECT state, count(*) FROM candidates GROUP BY state").fetchall())
        )

    def is_current(self) -> bool:
        """Does it agree with git, as far as the time stamps tell?"""
        with self._guard:
            try:
                stored = self._open().execute("SELECT value FROM facts WHERE key = 'stamp'").fetchone()
            except sqlite3.Error:
                return False
            return stored is not None and stored[0] == _stamp(self.git_dir)[0]

    def learn(self, candidate: Candidate, notes: str | None) -> None:
        """Take in one change without asking git. Only under the lab's lock, and if `is_current` before the change."""
        with self._guard, contextlib.suppress(sqlite3.Error):  # what is not learnt is read from git later
            db = self._open()
            facts = {"notes": notes or "", "stamp": _stamp(self.git_dir)[0]}
            with db:
                db.execute(_INSERT, _row(candidate))
                db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    def version(self) -> str:
        """A token that differs after every change of refs or notes; made from time stamps of files, so it costs nothing."""
        stamp, newest = _stamp(self.git_dir)
        # Two changes within the grain of the clock have one stamp: while it is that fresh, no two tokens are equal.
        now = time.time_ns()
        return stamp if newest < now - _RACY_NS else f"{stamp} {now}"

    def _ask(self, question: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._guard:
            for attempt in (1, 2):
                try:
                    db = self._open()
                    self._refresh(db)
                    return question(db)
                except sqlite3.Error as error:
                    # Damaged, locked for long, read-only or full: everything in it can be had from git again.
                    self._discard(in_memory=attempt == 1 and not _is_damage(error))
                    if attempt == 2:
                        raise StoreError(f"The index of {self.git.path} cannot be built: {error}.") from None
        raise AssertionError("unreachable")

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            try:
                refuse_links(self.git_dir, *(f"harnesslab/index.db{suffix}" for suffix in _FILES))
                self._path.parent.mkdir(exist_ok=True)
                self._db = _connect(str(self._path))
                if not _is_at_home(self._db, self._path):
                    self._discard(in_memory=False)
                    self._db = _connect(str(self._path))
                    with self._db:
                        self._db.execute("INSERT OR REPLACE INTO facts VALUES ('home', ?)", (_home(self._path),))
            except (OSError, sqlite3.Error):
                self._discard(in_memory=True)
        assert self._db is not None
        return self._db

    def _discard(self, in_memory: bool) -> None:
        self.close()
        if in_memory:
            self._db = _connect(":memory:")
            return
        for suffix in _FILES:
            with contextlib.suppress(OSError):
                Path(f"{self._path}{suffix}").unlink()

    def _refresh(self, db: sqlite3.Connection) -> None:
        facts = dict(db.execute("SELECT key, value FROM facts").fetchall())
        stamp, newest = _stamp(self.git_dir)
        settled = newest < time.time_ns() - _RACY_NS
        # The first look of a process compares every ref, whatever the stamps say.
        if self._compared and facts.get("stamp") == stamp:
            return
        refs, notes = self._read_refs()
        with db:
            self._update(db, refs, facts.get("notes") or None, notes)
            facts_now = {"notes": notes or "", "stamp": stamp if settled else ""}
            db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts_now.items())
        self._compared = True

    def _read_refs(self) -> tuple[dict[str, tuple[State, str]], str | None]:
        states = {FOLDERS[state]: state for state in _PRECEDENCE}
        found: dict[str, tuple[State, str]] = {}
        notes = None
        listing = self.git.text(
            "for-each-ref", "--format=%(objectname) %(refname)", *FOLDERS.values(), NOTES, deadline=120
        )
        for line in listing.split("\n"):
            commit, _, ref = line.partition(" ")
            folder, _, name = ref.rpartition("/")
            if ref == NOTES:
                notes = commit
            elif (state := states.get(folder + "/")) is not None and is_id(name):
                other = found.get(name)
                if other is None or _PRECEDENCE.index(other[0]) < _PRECEDENCE.index(state):
                    found[name] = (state, commit)
        return found, notes

    def _update(
        self, db: sqlite3.Connection, refs: dict[str, tuple[State, str]], old_notes: str | None, notes: str | None
    ) -> None:
        known = {row[0]: (row[1], row[2]) for row in db.execute("SELECT id, state, commit_id FROM candidates")}
        db.executemany("DELETE FROM candidates WHERE id = ?", [(name,) for name in known.keys() - refs.keys()])
        new = refs.keys() - known.keys()
        if notes is None or len(new) > _MANY_NEW or (old_notes and not self.git.resolve_many([old_notes])[0]):
            old_notes = None
        blobs = changed_notes(self.git, old_notes, notes)
        stale = [
            name
            for name, (state, commit) in refs.items()
            if old_notes is None or commit in blobs or name in new or _moved(known[name], state, commit)
        ]
        for start in range(0, len(stale), _CHUNK):
            part = {name: refs[name] for name in stale[start : start + _CHUNK]}
            verdicts = self._verdicts(db, [commit for _, commit in part.values()], blobs, old_notes)
            commits = {commit.id: commit for commit in read_commits(self.git, [commit for _, commit in part.values()])}
            rows = [
                _row(build(name, state, commits[commit], verdicts.get(commit)))
                for name, (state, commit) in part.items()
                if commit in commits
            ]
            db.executemany(_INSERT, rows)

    def _verdicts(
        self, db: sqlite3.Connection, commits: list[str], blobs: dict[str, str | None], old_notes: str | None
    ) -> dict[str, dict[str, Any] | None]:
        changed = {commit: blob for commit in commits if (blob := blobs.get(commit))}
        texts = self.git.objects(changed.values())
        verdicts = {commit: parse_note(texts.get(blob)) for commit, blob in changed.items()}
        if old_notes is not None:  # what did not change is here already, unless the candidate itself is new
            for commit in set(commits) - blobs.keys():
                row = db.execute("SELECT verdict FROM candidates WHERE commit_id = ?", (commit,)).fetchone()
                if row is None:
                    verdicts[commit] = read_note(self.git, old_notes, commit)
                elif row[0]:
                    verdicts[commit] = json.loads(row[0])
        return verdicts


def _moved(known: tuple[str, str], state: State, commit: str) -> bool:
    return known[1] != commit or FOLDERS[known[0]] != FOLDERS[state]  # type: ignore[index]


def _connect(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=2.0, check_same_thread=False)
    try:
        db.create_function("casefolded", 1, lambda text: text and text.casefold(), deterministic=True)
        db.execute("PRAGMA trusted_schema=OFF")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=OFF")  # it can be rebuilt
        if db.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
            db.executescript("DROP TABLE IF EXISTS candidates; DROP TABLE IF EXISTS facts;")
        db.executescript(_SCHEMA)
        db.execute(f"PRAGMA user_version={_VERSION}")
        db.commit()
    except sqlite3.Error:
        db.close()
        raise
    return db


def _is_at_home(db: sqlite3.Connection, path: Path) -> bool:
    """Was this file made here? One that came with a copied or unpacked lab may say anything of the candidates."""
    stored = db.execute("SELECT value FROM facts WHERE key = 'home'").fetchone()
    return stored is not None and stored[0] == _home(path)


def _home(path: Path) -> str:
    found = path.stat()
    return f"{found.st_dev} {found.st_ino} {path}"


def _is_damage(error: sqlite3.Error) -> bool:
    return any(word in str(error) for word in ("malformed", "not a database", "no such", "corrupt"))


def _stamp(git_dir: Path) -> tuple[str, int]:
    places = [git_dir / folder for folder in sorted(set(FOLDERS.values()))]
    places += [
        git_dir / "refs/notes",
        git_dir / "refs/harnesslab",
        git_dir / "packed-refs",
        git_dir / "reftable/tables.list",
    ]
    parts, newest = [], 0
    for place in places:
        try:
            stat = place.stat()
        except OSError:
            parts.append("-")
            continue
        parts.append(f"{stat.st_mtime_ns}:{stat.st_ino}:{stat.st_size}")
        newest = max(newest, stat.st_mtime_ns)
    return " ".join(parts), newest


def _where(wanted: Filter) -> tuple[str, list[Any]]:
    tests: list[str] = []
    values: list[Any] = []
    if wanted.state is not None:
        states = (wanted.state,) if isinstance(wanted.state, str) else tuple(wanted.state)
        unknown = [state for state in states if state not in FOLDERS]
        if unknown:
            raise StoreError(f"There is no state {unknown[0]!r}; states are {', '.join(FOLDERS)}.")
        tests.append(f"state IN ({','.join('?' * len(states))})")
        values += states
    for column, value in (("layer", wanted.layer), ("decided_by", wanted.decided_by)):
        if value is not None:
            tests.append(f"{column} = ?")
            values.append(value)
    for column, value in (("search", wanted.text), ("casefolded(reason)", wanted.reason)):
        if value:
            tests.append(f"instr({column}, ?) > 0")
            values.append(value.casefold())
    return ("WHERE " + " AND ".join(tests) if tests else ""), values


def _row(candidate: Candidate) -> tuple[Any, ...]:
    meta = json.dumps(candidate.meta, ensure_ascii=False)
    verdict = None if candidate.verdict is None else json.dumps(candidate.verdict, ensure_ascii=False)
    c = candidate
    search = " ".join([c.id, c.commit, c.subject, meta, c.reason or "", c.decided_by or ""]).casefold()
    return (
        c.id, c.commit, c.parent, c.state, c.subject, c.created, meta, verdict, c.layer, c.kind, c.estimator,
        c.reason, c.decided_by, c.decided_at, c.delta, search,
    )  # fmt: skip


def _candidate(row: tuple[Any, ...]) -> Candidate:
    verdict = None if row[7] is None else json.loads(row[7])
    names = ("layer", "kind", "estimator", "reason", "decided_by", "decided_at", "delta")
    return Candidate(
        id=row[0],
        commit=row[1],
        parent=row[2],
        state=row[3],
        subject=row[4],
        created=row[5],
        meta=json.loads(row[6]),
        verdict=verdict,
        **dict(zip(names, row[8:], strict=True)),
    )
