"""`LabRepo`: one lab's git repository, as a handle."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.errors import StoreError
from harnesslab.store import edits, ownfiles
from harnesslab.store.candidates import Candidate, Filter, Order, Page, build
from harnesslab.store.core import LEARNING, Core, exclude_records
from harnesslab.store.edits import Edits
from harnesslab.store.git import run_in
from harnesslab.store.journal import Journal
from harnesslab.store.lock import WAIT_S
from harnesslab.store.moves import RefMove
from harnesslab.store.notes import read_note
from harnesslab.store.objects import read_commits, refuse_clash, write_commit, write_tree
from harnesslab.store.openings import SEALED, all_openings, read_openings, write_openings
from harnesslab.store.refs import BASELINE, FOLDERS, NOTES, State, check_name, check_path, new_id
from harnesslab.store.repository import Repository, commit_of
from harnesslab.store.retry import reapply
from harnesslab.store.settle import Settled, restore, settle

START = "Start the lab"
"""The subject of a lab's first commit."""


@dataclass(frozen=True)
class HistoryEntry:
    """One commit of the baseline's history; `candidate` where it was promoted, `rollback_to` where it went back."""

    commit: str
    parent: str | None
    subject: str
    created: float
    author: str
    candidate: Candidate | None
    rollback_to: str | None


class LabRepo(Repository):
    """A git repository whose branch `main` is the baseline and whose candidates are child commits under refs.

    Writes go under one lock per lab and move all their refs at once; the user's index, uncommitted work
    and other branches are never touched. Every method raises `StoreError` with one sentence on trouble.
    """

    def __init__(self, core: Core):
        super().__init__(core.git)
        self._core = core

    @classmethod
    def open(cls, path: Path | str) -> LabRepo:
        """Open the lab in folder `path`, which must have its own repository with a branch `main`."""
        core = Core(Path(path).expanduser().resolve())
        core.baseline()
        with contextlib.suppress(OSError):  # a read-only lab can be looked at
            exclude_records(core.git_dir)
        core.recover_if_free()
        return cls(core)

    @classmethod
    def create(cls, path: Path | str, files: Mapping[str, str | bytes], message: str = START) -> LabRepo:
        """Make a lab in folder `path` whose first baseline holds `files`. Also works inside another repository."""
        target = Path(path).expanduser().resolve()
        if os.path.lexists(target / ".git"):
            raise StoreError(f"{target} is a git repository already; open it instead.")
        for name, content in files.items():
            existing = target / check_path(name)
            data = content.encode("utf-8") if isinstance(content, str) else content
            if existing.exists() and (not existing.is_file() or existing.read_bytes() != data):
                raise StoreError(f"{existing} is there already with other content; create the lab in an empty folder.")
        try:
            target.mkdir(parents=True, exist_ok=True)
            run_in(target, "init", "-q", "--template=", "--initial-branch=main")
            core = Core(target)
            exclude_records(core.git_dir)
            first = write_commit(core.git, write_tree(core.git, None, files), (), message, {"lab": 1})
            core.moves.git.run("update-ref", BASELINE, first, "", write=True)
            core.git.run("read-tree", "--reset", "-u", first, write=True)
        except BaseException as error:
            shutil.rmtree(target / ".git", ignore_errors=True)
            if isinstance(error, OSError):
                raise StoreError(f"The lab {target} cannot be created: {error.strerror}.") from None
            raise
        return cls(core)

    @property
    def git_dir(self) -> Path:
        """The folder that git keeps the repository in."""
        return self._core.git_dir

    def close(self) -> None:
        """Close the index file; the handle may be used again."""
        self._core.index.close()

    # -- reading ---------------------------------------------------------------------------------

    def baseline(self) -> str:
        """The commit id of the baseline."""
        return self._core.baseline()

    def root(self) -> str:
        """The commit id of the first baseline, with which the lab was started."""
        return self._core.git.text("rev-list", "--first-parent", "--max-parents=0", BASELINE).split()[-1]

    def version(self) -> str:
        """A token that changes whenever the baseline, a candidate or a verdict changes. Cheap: for polling."""
        return f"{self.baseline()} {self._core.index.version()}"

    def checked_out(self) -> str | None:
        """The commit that the files of the checkout belong to; None on a branch without commits."""
        return edits.checked_out(self._core.git)

    def dirty(self) -> list[str]:
        """Paths of the checkout that differ from the commit that is checked out (changed, staged, new, deleted); [] when clean."""
        return edits.dirty(self._core.git)

    def edits(self, wanted: Callable[[str], bool] = bool, max_bytes: int = edits.MAX_FILE_BYTES) -> Edits:
        """The edited files of the checkout in the form that `propose` takes: those whose path is `wanted`, and what was left out."""
        return edits.read_edits(self._core.git, wanted, max_bytes)

    def candidates(
        self, where: Filter | None = None, *, order: Order = "time", offset: int = 0, limit: int = 50, **filters: Any
    ) -> Page:
        """One page of candidates, newest (or largest delta) first.

        Filters are given as a `Filter` or by name: `state` (one or a tuple), `text`, `layer`, `decided_by`, `reason`.
        """
        return self._core.index.page(where or Filter(**filters), order, offset, limit)

    def counts(self) -> dict[str, int]:
        """How many candidates there are in each state."""
        return self._core.index.counts()

    def candidate(self, candidate_id: str) -> Candidate:
        """One candidate, read from git itself."""
        place = self._core.locate(candidate_id)
        note = read_note(self._core.git, place.notes, place.commit)
        return build(place.id, place.folder, commit_of(self._core.git, place.commit), note)

    def history(self, limit: int = 50, offset: int = 0) -> list[HistoryEntry]:
        """The baseline's history, newest first."""
        git = self._core.git
        listing = git.text("rev-list", "--first-parent", f"--skip={offset}", f"--max-count={limit}", BASELINE)
        return [
            HistoryEntry(
                commit=commit.id,
                parent=commit.parents[0] if commit.parents else None,
                subject=commit.subject,
                created=commit.created,
                author=commit.author,
                candidate=self._core.index.by_commit(commit.id),
                rollback_to=commit.meta.get("rollback_to"),
            )
            for commit in read_commits(git, listing.split())
        ]

    def note(self, commit: str) -> dict[str, Any] | None:
        """The note on a commit as it was written; None where there is none."""
        notes = self._core.git.resolve_many([NOTES])[0]
        return read_note(self._core.git, notes, self.resolve(commit))

    def verdict(self, commit: str) -> dict[str, Any] | None:
        """The note on a commit, with its `state`, earlier ones under `history`; None while the candidate is pending."""
        note = self.note(commit)
        return None if note is None or note.get("state") == "pending" else note

    def openings(self, journal: Journal) -> list[dict[str, Any]]:
        """The openings of the sealed split, oldest first; `journal` adds what only older records hold."""
        return [opening for opening in all_openings(self._core.git, journal) if opening["split"] == SEALED]

    def past_looks(self) -> list[dict[str, Any]]:
        """Looks at the gate by the labs in whose place this one was started over, oldest first."""
        return [look for look in read_openings(self._core.git) if look["split"] == "gate"]

    def find(self, name: str) -> Candidate | None:
        """The candidate that a ref or a commit id names, wherever its ref is by now; None if it names no candidate."""
        check_name(name)
        for folder in FOLDERS.values():
            if name.startswith(folder):
                return self.candidate(name.removeprefix(folder))
        return None if name == "HEAD" or name.startswith("refs/") else self._core.index.by_commit(name)

    # -- writing ---------------------------------------------------------------------------------

    def propose(
        self,
        changes: Mapping[str, str | bytes | None],
        message: str,
        meta: Mapping[str, Any] | None = None,
        steps: Sequence[tuple[Mapping[str, str | bytes | None], str]] = (),
    ) -> Candidate:
        """Store a change of the baseline as a candidate; the checkout is not touched.

        `changes`: path to new content, None to delete. `message`: first line is the subject. `meta`: JSON
        values; `layer`, `kind` and `estimator` become filters. `steps`: changes with messages that come to the same, for a
        candidate of several commits, the last of which has `message`; promoted, each is a commit of the baseline.
        """
        if not changes:
            raise StoreError("A candidate needs at least one changed file.", cause="proposal")
        core = self._core
        with core.writing("store a candidate"):
            baseline = core.baseline()
            tree = write_tree(core.git, baseline, changes)
            if tree == commit_of(core.git, baseline).tree:
                raise StoreError(
                    "The change leaves every file as it is in the baseline; nothing to propose.", cause="proposal"
                )
            refuse_clash(core.git, baseline, tree, changes)
            last = baseline
            for some, subject in steps[:-1]:
                last = write_commit(core.git, write_tree(core.git, last, some), (last,), subject, {})
            if last != baseline:
                meta = {**(meta or {}), "base": baseline}
            return self._keep(write_commit(core.git, tree, (last,), message, meta or {}))

    def record_openings(self, openings: Sequence[Mapping[str, Any]], on: str | None = None) -> None:
        """Note openings of the sealed split on their commits (`on`: on this one instead); those on record stay."""
        write_openings(self._core, openings, on)

    def write_learning(self, text: str) -> None:
        """Replace the running diagnosis beside the harness; where the folder cannot be written it stays as it is."""
        with contextlib.suppress(OSError):
            ownfiles.write(self.path, LEARNING, text.encode("utf-8", "replace"))

    @contextlib.contextmanager
    def holding(self, purpose: str, wait: float = WAIT_S) -> Iterator[None]:
        """Hold the lab's lock over several reads and writes; `LabLocked` after `wait` seconds, naming the owner."""
        with self._core.writing(purpose, wait):
            yield

    def settle(self, candidate_id: str, state: State, note: Mapping[str, Any]) -> Settled:
        """Bring a candidate into a state and replace its note, as one transaction over refs and notes.

        Into `promoted` the baseline is fast-forwarded, out of it goes back to the parent; `BaselineMoved` where that
        is not the next step of the baseline. Which states may follow which is for `harnesslab.ledger` to say.
        """
        return settle(self._core, candidate_id, state, note)

    def restore(self, commit: str, message: str, meta: Mapping[str, Any] | None = None) -> Settled:
        """A new commit on the baseline with the files of another commit."""
        return restore(self._core, self.resolve(commit), message, meta or {})

    def reapply(self, candidate_id: str) -> Candidate:
        """Re-apply a candidate's change on today's baseline as a new candidate; `RetryConflict` shows a conflict."""
        core = self._core
        with core.writing(f"retry {candidate_id}"):
            place = core.locate(candidate_id)
            source = commit_of(core.git, place.commit)
            tree = reapply(core.git, source, commit_of(core.git, place.baseline), candidate_id)
            meta = {key: value for key, value in source.meta.items() if key != "base"} | {"retry_of": candidate_id}
            return self._keep(write_commit(core.git, tree, (place.baseline,), source.message, meta))

    def _keep(self, commit: str) -> Candidate:
        core, candidate_id = self._core, new_id()
        candidate = build(candidate_id, "pending", commit_of(core.git, commit), None)
        notes = core.git.resolve_many([NOTES])[0]
        indexed = core.index.is_current()
        core.moves.apply([RefMove(candidate.ref, None, commit)], f"propose {candidate_id}")
        core.moves.done()
        if indexed:
            core.index.learn(candidate, notes)
        return candidate
