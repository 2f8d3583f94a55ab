"""Git refs and notes, the SQLite run store, and one lock per lab."""

from harnesslab.store.candidates import Candidate, Filter, Order, Page
from harnesslab.store.core import LEARNING
from harnesslab.store.diff import Diff, FileDiff
from harnesslab.store.foreign import ForeignCandidate, foreign_version, list_foreign
from harnesslab.store.git import time_limit
from harnesslab.store.gitpython import open_gitpython
from harnesslab.store.objects import Commit
from harnesslab.store.openings import new_opening
from harnesslab.store.patches import PatchRefused, apply_patch
from harnesslab.store.refs import FOLDERS, NOTES, STATES, State
from harnesslab.store.repo import HistoryEntry, LabRepo
from harnesslab.store.repository import Repository
from harnesslab.store.retry import RetryConflict
from harnesslab.store.runs import EPISODE_FIELDS, RunStore, identity_hash
from harnesslab.store.settle import Settled

__all__ = [
    "EPISODE_FIELDS",
    "FOLDERS",
    "LEARNING",
    "NOTES",
    "STATES",
    "Candidate",
    "Commit",
    "Diff",
    "FileDiff",
    "Filter",
    "ForeignCandidate",
    "HistoryEntry",
    "LabRepo",
    "Order",
    "Page",
    "PatchRefused",
    "Repository",
    "RetryConflict",
    "RunStore",
    "Settled",
    "State",
    "apply_patch",
    "foreign_version",
    "identity_hash",
    "list_foreign",
    "new_opening",
    "open_gitpython",
    "time_limit",
]
