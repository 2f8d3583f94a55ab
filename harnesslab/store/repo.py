"""`LabRepo`: one lab's git repository, as a handle."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.errors import StoreError
from harnesslab.store import decisions, edits, worktree
from harnesslab.store.candidates import Candidate, Filter, Order, Page, build
from harnesslab.store.core import Core, exclude_records
from harnesslab.store.decisions import Decision, commit_of
from harnesslab.store.diff import Diff, compare
from harnesslab.store.edits import Edits
from harnesslab.store.git import run_in
from harnesslab.store.journal import Journal
from harnesslab.store.moves import RefMove
from harnesslab.store.notes import read_note
from harnesslab.store.objects import read_commits, read_files, write_commit, write_tree
from harnesslab.store.openings import all_openings, write_openings
from harnesslab.store.refs import BASELINE, NOTES, check_name, check_path, new_id
from harnesslab.store.retry import reapply

MAX_HARNESS_BYTES = 20_000_000
"""The files of one harness commit, together, at most."""
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


class LabRepo:
    """A git repository whose branch `main` is the baseline and whose candidates are child commits under refs.

    Writes go under one lock per lab and move all their refs at once; the user's index, uncommitted work
    and other branches are never touched. Every method raises `StoreError` with one sentence on trouble.
    """

    def __init__(self, core: Core):
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
        if (target / ".git").exists():
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
    def path(self) -> Path:
        """The lab's folder."""
        return self._core.path

    @property
    def git_dir(self) -> Path:
        """The folder that git keeps the repository in."""
        return self._core.git_dir

    def close(self) -> None:
        """Close the index file; the handle may be used again."""
        self._core.index.close()

    def notices(self) -> list[str]:
        """What a reader should know before using git in this folder, one sentence each; [] for a plain lab."""
        return self._core.git.isolation.notices()

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

    def head(self) -> str | None:
        """The full name of the branch that the checkout is on; None when HEAD is detached."""
        return worktree.head_branch(self._core.git)

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
        return build(place.id, place.folder, commit_of(self._core, place.commit), note)

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

    def verdict(self, commit: str) -> dict[str, Any] | None:
        """The stored verdict on a commit, with its `state`, earlier ones under `history`; None if not judged."""
        notes = self._core.git.resolve_many([NOTES])[0]
        note = read_note(self._core.git, notes, self.resolve(commit))
        return None if note is None or note.get("state") == "pending" else note

    def openings(self, journal: Journal) -> list[dict[str, Any]]:
        """The openings of the sealed split, oldest first; `journal` adds what only older records hold."""
        return all_openings(self._core.git, journal)

    def files(self, commit: str) -> dict[str, bytes]:
        """All files of the harness at a commit, path to content."""
        return read_files(self._core.git, self.resolve(commit), MAX_HARNESS_BYTES)

    def diff(self, old: str, new: str) -> Diff:
        """Compare any two refs or commits."""
        return compare(self._core.git, self.resolve(old), self.resolve(new))

    def resolve(self, name: str) -> str:
        """The commit id behind a full ref name, `HEAD`, or a (short) commit id; `StoreError` if there is none."""
        found = self._core.git.resolve_many([f"{check_name(name)}^{{commit}}"])[0]
        if found is None:
            raise StoreError(f"There is no commit {name} in {self.path}.")
        return found

    # -- writing ---------------------------------------------------------------------------------

    def propose(
        self, changes: Mapping[str, str | bytes | None], message: str, meta: Mapping[str, Any] | None = None
    ) -> Candidate:
        """Store a change of the baseline as a candidate; the checkout is not touched.

        `changes`: path to new content, None to delete. `message`: first line is the subject. `meta`: JSON
        values; `layer`, `kind` and `estimator` become filters.
        """
        if not changes:
            raise StoreError("A candidate needs at least one changed file.", cause="proposal")
        core = self._core
        with core.writing("store a candidate"):
            baseline = core.baseline()
            tree = write_tree(core.git, baseline, changes)
            if tree == commit_of(core, baseline).tree:
                raise StoreError(
                    "The change leaves every file as it is in the baseline; nothing to propose.", cause="proposal"
                )
            return self._keep(write_commit(core.git, tree, (baseline,), message, meta or {}))

    def record_openings(self, openings: Sequence[Mapping[str, Any]], on: str | None = None) -> None:
        """Note openings of the sealed split on their commits (`on`: on this one instead); those on record stay."""
        write_openings(self._core, openings, on)

    def promote(self, candidate_id: str, verdict: Mapping[str, Any]) -> Decision:
        """Fast-forward the baseline to the candidate; `BaselineMoved` if it was made on another baseline."""
        return decisions.decide(self._core, candidate_id, "promoted", verdict)

    def reject(self, candidate_id: str, verdict: Mapping[str, Any]) -> Decision:
        """Turn the candidate down; it stays reachable under `refs/harnesslab/rejected/` for ever."""
        return decisions.decide(self._core, candidate_id, "rejected", verdict)

    def shelve(self, candidate_id: str, verdict: Mapping[str, Any]) -> Decision:
        """Record that the measurement could not tell; the candidate can still be promoted or rejected."""
        return decisions.decide(self._core, candidate_id, "undecided", verdict)

    def undo(self, candidate_id: str) -> Decision:
        """Take back the last decision on a candidate (a promotion only while it is the baseline)."""
        return decisions.undo(self._core, candidate_id)

    def override(self, candidate_id: str, decision: str, who: str, why: str) -> Decision:
        """'promote' or 'reject' against the recorded verdict; recorded as an override, with who and why."""
        return decisions.override(self._core, candidate_id, decision, who, why)

    def rollback(self, commit: str, who: str | None = None, why: str = "") -> Decision:
        """Bring the files of an earlier baseline back by a new commit; nothing is lost."""
        return decisions.rollback(self._core, self.resolve(commit), who, why)

    def retry(self, candidate_id: str) -> Candidate:
        """Re-apply a candidate's change on today's baseline as a new candidate; `RetryConflict` shows a conflict."""
        core = self._core
        with core.writing(f"retry {candidate_id}"):
            place = core.locate(candidate_id)
            source = commit_of(core, place.commit)
            tree = reapply(core.git, source, commit_of(core, place.baseline), candidate_id)
            meta = {**source.meta, "retry_of": candidate_id}
            return self._keep(write_commit(core.git, tree, (place.baseline,), source.message, meta))

    def _keep(self, commit: str) -> Candidate:
        core, candidate_id = self._core, new_id()
        candidate = build(candidate_id, "pending", commit_of(core, commit), None)
        notes = core.git.resolve_many([NOTES])[0]
        indexed = core.index.is_current()
        core.moves.apply([RefMove(candidate.ref, None, commit)], f"propose {candidate_id}")
        core.moves.done()
        if indexed:
            core.index.learn(candidate, notes)
        return candidate
