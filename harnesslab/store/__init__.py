"""Git refs and notes, the SQLite run store, and one lock per lab."""

from harnesslab.store.candidates import Candidate, Filter, Page
from harnesslab.store.decisions import Decision
from harnesslab.store.diff import Diff, FileDiff
from harnesslab.store.foreign import ForeignCandidate, list_foreign
from harnesslab.store.openings import new_opening
from harnesslab.store.repo import HistoryEntry, LabRepo
from harnesslab.store.retry import RetryConflict
from harnesslab.store.runs import EPISODE_FIELDS, RunStore, identity_hash

__all__ = [
    "EPISODE_FIELDS",
    "Candidate",
    "Decision",
    "Diff",
    "FileDiff",
    "Filter",
    "ForeignCandidate",
    "HistoryEntry",
    "LabRepo",
    "Page",
    "RetryConflict",
    "RunStore",
    "identity_hash",
    "list_foreign",
    "new_opening",
]
