"""`RunStore`: what was measured. SQLite in WAL mode, one transaction an episode."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sqlite3
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from harnesslab.errors import StoreError
from harnesslab.plaintext import one_line
from harnesslab.store import spill
from harnesslab.store.aside import set_aside
from harnesslab.store.codec import from_json, pack, to_json, unpack
from harnesslab.store.core import PRIVATE
from harnesslab.store.database import explain, transaction
from harnesslab.store.journal import Journal
from harnesslab.store.ownfiles import refuse_links
from harnesslab.store.refs import new_id

DATABASE = "lab.db"
"""The records, in a lab's private folder."""

_DATABASE_FILES = tuple(f"{DATABASE}{suffix}" for suffix in ("", "-wal", "-shm"))
_DEFAULTS: dict[str, Any] = {
    "task_id": "", "family": "", "repeat": 0, "seed": 0, "solved": False, "reward": None, "progress": None, "steps": 0,
    "invalid": 0, "prompt_tokens": 0, "completion_tokens": 0, "seconds": None, "status": "done", "owner": "", "label": "",
    "fired": {}, "extra": {},
}  # fmt: skip
EPISODE_FIELDS = tuple(_DEFAULTS)
"""The columns of an episode, beside `id` and `run_id`."""

_JSON_FIELDS = ("fired", "extra")
_TEXT_FIELDS = ("task_id", "family", "status", "owner", "label")
_INSERT = (
    f"INSERT OR REPLACE INTO episodes (run_id, {', '.join(EPISODE_FIELDS)}) "
    f"VALUES ({', '.join('?' * (len(EPISODE_FIELDS) + 1))})"
)
_SELECT = f"SELECT id, run_id, {', '.join(EPISODE_FIELDS)} FROM episodes WHERE run_id = ? ORDER BY id"
_RUN_FIELDS = (
    "id",
    "commit",
    "identity",
    "identity_hash",
    "split",
    "purpose",
    "backbone",
    "created",
    "finished",
    "status",
    "meta",
)
_SELECT_RUN = f"SELECT {', '.join(chr(34) + name + chr(34) for name in _RUN_FIELDS)} FROM runs"


def identity_hash(identity: Mapping[str, Any]) -> str:
    """A short fingerprint of a measurement's identity; equal exactly when the JSON is equal, whatever its order."""
    text = json.dumps(json.loads(to_json(identity)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class RunStore(Journal):
    """The records of one lab, in `.harnesslab/lab.db`. Safe to use from several threads and processes."""

    def __init__(self, folder: Path):
        super().__init__(folder / DATABASE)
        self.folder = folder
        self._unsaved: list[tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]] = []
        self._spilled = (folder / "spill").is_dir()
        self.notices: list[str] = []
        """What could not be read and was set aside, one sentence each."""

    @staticmethod
    def exists(lab: Path | str) -> bool:
        """Whether the lab in folder `lab` has records; looking starts none."""
        folder = Path(lab).expanduser() / PRIVATE
        return (folder / DATABASE).is_file() and not folder.is_symlink()

    @classmethod
    def open(cls, lab: Path | str, *, mend: bool = True) -> RunStore:
        """Open (or start) the records of the lab in folder `lab`.

        `mend`: take in episodes that were spilled to files, and set aside what cannot be read; else only look.
        """
        folder = Path(lab).expanduser().resolve() / PRIVATE
        if folder.is_symlink():
            refuse_links(folder.parent, PRIVATE)
        notices = _set_aside(_in_the_way(folder), "it is not what harnesslab keeps there") if mend else []
        refuse_links(folder.parent, *(f"{PRIVATE}/{name}" for name in (*_DATABASE_FILES, "spill")))
        try:
            store = cls(folder)
        except StoreError as error:
            if error.cause != "corrupt" or not mend:
                raise
            database = [folder / name for name in _DATABASE_FILES]
            notices += _set_aside(database, "the database is damaged; the harness and its verdicts are in git")
            store = cls(folder)
        store.notices += notices
        if mend and not store.read_only:
            with contextlib.suppress(StoreError):  # a full disk must not keep anybody from reading
                store.flush()
        return store

    def close(self) -> None:
        """Save what is still in memory, and close the database."""
        with self._guard:
            if self._unsaved and not self.read_only:
                self.flush()
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- runs ------------------------------------------------------------------------------------

    def begin_run(
        self,
        commit: str,
        identity: Mapping[str, Any],
        *,
        split: str,
        purpose: str = "measure",
        backbone: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> str:
        """Start a run and return its id; its status is 'running' until `finish_run`."""
        run_id = new_id()
        row = (run_id, commit, to_json(identity), identity_hash(identity), split, purpose, backbone, time.time())
        with self._writing() as db:
            db.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, 'running', ?)",
                (*row, to_json(dict(meta or {}))),
            )
        return run_id

    def finish_run(self, run_id: str, status: str = "done", meta: Mapping[str, Any] | None = None) -> None:
        """End a run; `meta` is merged into what it has."""
        self.flush()
        with self._writing() as db:
            row = db.execute("SELECT meta FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise StoreError(f"There is no run {run_id} in {self.path}.")
            merged = to_json({**from_json(row[0]), **(meta or {})})
            db.execute(
                "UPDATE runs SET status = ?, finished = ?, meta = ? WHERE id = ?", (status, time.time(), merged, run_id)
            )

    def run(self, run_id: str) -> dict[str, Any]:
        """One run as a dict: what `begin_run` was given, and id, identity_hash, created, finished, status."""
        rows = self._read(f"{_SELECT_RUN} WHERE id = ?", (run_id,))
        if not rows:
            raise StoreError(f"There is no run {run_id} in {self.path}.")
        return _run(rows[0])

    def runs(self, *, offset: int = 0, limit: int = 50, **equal: str) -> list[dict[str, Any]]:
        """Runs, newest first; keyword arguments (commit, identity_hash, split, purpose, backbone, status) must match."""
        return self._runs(equal, offset, limit)

    def _runs(self, equal: Mapping[str, str], offset: int, limit: int) -> list[dict[str, Any]]:
        unknown = equal.keys() - set(_RUN_FIELDS)
        if unknown:
            raise StoreError(f"Runs cannot be chosen by {sorted(unknown)[0]!r}.")
        tests = " AND ".join(f'"{name}" = ?' for name in equal)
        sql = f"{_SELECT_RUN} {'WHERE ' + tests if tests else ''} ORDER BY created DESC, id DESC LIMIT ? OFFSET ?"
        return [_run(row) for row in self._read(sql, (*equal.values(), limit, offset))]

    def find_run(self, commit: str, identity_hash: str, **equal: str) -> dict[str, Any] | None:
        """The newest run of this commit with this measurement identity, to show or to resume; None if there is none."""
        found = self._runs({"commit": commit, "identity_hash": identity_hash, **equal}, 0, 1)
        return found[0] if found else None

    # -- episodes --------------------------------------------------------------------------------

    def add_episode(self, run_id: str, summary: Mapping[str, Any], trace: Sequence[Mapping[str, Any]]) -> int | None:
        """Store a finished episode and its trace; returns its id. It survives a kill of the process from then on.

        `summary` has keys of `EPISODE_FIELDS`; others are kept under `extra`. The same task, repeat and seed
        in the same run replaces the earlier episode. Where the database refuses (full, locked, read-only) the
        episode goes to `.harnesslab/spill/` and None is returned; where that fails too it stays in memory for
        the next `flush` and `StoreError` is raised.
        """
        try:
            episode_id = self._insert(run_id, summary, trace)
        except sqlite3.Error as error:
            try:
                spill.write(self.folder / "spill", run_id, summary, trace)
            except OSError:
                self._unsaved.append((run_id, summary, trace))
                raise explain(error, self.path) from None
            self._spilled = True
            return None
        if self._spilled or self._unsaved:
            with contextlib.suppress(StoreError):
                self.flush()
        return episode_id

    def flush(self) -> int:
        """Bring spilled and unsaved episodes into the database; returns how many came in."""
        with self._guard:
            count = 0
            try:
                while self._unsaved:
                    self._insert(*self._unsaved[0])
                    self._unsaved.pop(0)
                    count += 1
                if self._spilled:
                    refuse_links(self.folder.parent, f"{PRIVATE}/spill")
                    count += sum(self._take_in(path) for path in spill.waiting(self.folder / "spill"))
                    self._spilled = False
            except sqlite3.Error as error:
                raise explain(error, self.path) from None
            return count

    def _take_in(self, path: Path) -> bool:
        try:
            spilled = spill.read(path)
            self._insert(spilled.run_id, spilled.summary, spilled.trace)
        except FileNotFoundError:
            return False  # another process imported it
        except (OSError, ValueError, TypeError, OverflowError, StoreError) as error:
            self.notices += _set_aside([path], f"it cannot be read ({getattr(error, 'strerror', None) or error})")
            return False
        with contextlib.suppress(OSError):  # imported but not deleted: importing it again replaces it by itself
            path.unlink(missing_ok=True)
        return True

    def episodes(self, run_id: str) -> list[dict[str, Any]]:
        """The episodes of a run in the order of their writing, without traces."""
        columns = self.episode_columns(run_id)
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def episode_columns(self, run_id: str) -> dict[str, list[Any]]:
        """The same as columns, ready for `pandas.DataFrame`."""
        names = ("id", "run_id", *EPISODE_FIELDS)
        rows = self._read(_SELECT, (run_id,))
        columns: dict[str, list[Any]] = {
            name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=False)
        }
        if not columns:
            return {name: [] for name in names}
        columns["solved"] = [bool(value) for value in columns["solved"]]
        for name in _JSON_FIELDS:
            columns[name] = [from_json(text) if text != "{}" else {} for text in columns[name]]
        return columns

    def done(self, run_id: str) -> set[tuple[str, int, int]]:
        """(task_id, repeat, seed) of the episodes that a run has already; what is not there is still to do."""
        return set(self._read("SELECT task_id, repeat, seed FROM episodes WHERE run_id = ?", (run_id,)))

    def trace(self, episode_id: int) -> list[dict[str, Any]]:
        """The steps of one episode."""
        rows = self._read("SELECT data FROM traces WHERE episode_id = ?", (episode_id,))
        if not rows:
            raise StoreError(f"There is no episode {episode_id} in {self.path}.")
        return unpack(rows[0][0])

    def _insert(self, run_id: str, summary: Mapping[str, Any], trace: Sequence[Mapping[str, Any]]) -> int:
        row, data = _episode_row(summary), pack(trace)
        with self._guard, transaction(self._db):
            self._db.execute(
                "DELETE FROM traces WHERE episode_id IN "
                "(SELECT id FROM episodes WHERE run_id = ? AND task_id = ? AND repeat = ? AND seed = ?)",
                (run_id, row[0], row[2], row[3]),
            )
            episode_id = self._db.execute(_INSERT, (run_id, *row)).lastrowid
            self._db.execute("INSERT INTO traces VALUES (?, ?)", (episode_id, data))
        assert episode_id is not None
        return episode_id


def _in_the_way(folder: Path) -> list[Path]:
    """What has the name of a folder or file of records and is something else: a read of a pipe would never end."""
    found = []
    for place, wanted in ((folder, stat.S_ISDIR), (folder / "spill", stat.S_ISDIR), (folder / "lab.db", stat.S_ISREG)):
        with contextlib.suppress(OSError):
            about = place.lstat()
            if stat.S_ISLNK(about.st_mode):
                continue  # that is refused
            # SQLite takes a file that is shorter than its header for an empty one, and writes over it.
            if not wanted(about.st_mode) or (stat.S_ISREG(about.st_mode) and 0 < about.st_size < _HEADER_BYTES):
                found.append(place)
    return found


_HEADER_BYTES = 100


def _set_aside(places: Sequence[Path], why: str) -> list[str]:
    moved = [(place, aside) for place in places if os.path.lexists(place) and (aside := set_aside(place))]
    return [f"{place} was set aside as {aside.name}: {one_line(why)[:200]}." for place, aside in moved]


def _episode_row(summary: Mapping[str, Any]) -> list[Any]:
    values = {**_DEFAULTS, **summary}
    others = {key: value for key, value in summary.items() if key not in _DEFAULTS}
    if others:
        values["extra"] = {**values["extra"], **others}
    for name in _JSON_FIELDS:
        values[name] = to_json(values[name])
    for name in _TEXT_FIELDS:
        values[name] = str(values[name] or "").encode("utf-8", "replace").decode("utf-8")
    for name in ("repeat", "seed", "steps", "invalid", "prompt_tokens", "completion_tokens"):
        number = int(values[name] or 0)
        if abs(number) >= 2**63:
            raise StoreError(f"An episode's {name} must fit 64 bits; {number} does not.")
        values[name] = number
    for name in ("reward", "progress", "seconds"):
        real = math.nan if values[name] is None else float(values[name])
        values[name] = real if math.isfinite(real) else None
    values["solved"] = int(bool(values["solved"]))
    return [values[name] for name in EPISODE_FIELDS]


def _run(row: tuple[Any, ...]) -> dict[str, Any]:
    run = dict(zip(_RUN_FIELDS, row, strict=True))
    run["identity"], run["meta"] = from_json(run["identity"]), from_json(run["meta"])
    return run
