"""Opened labs, kept open between requests: opening costs two git processes, looking costs none."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from harnesslab.ledger import Candidate, Ledger
from harnesslab.server.answers import LabKind, LabSummary
from harnesslab.server.core.roots import guard_repository, kind_of, resolve_folder
from harnesslab.server.problems import Problem
from harnesslab.store import LabRepo, Repository, RunStore, foreign_version

MAX_OPEN = 8


@dataclass(frozen=True)
class Lab:
    """One lab as the sidebar sees it. `repo` is None for a repository of harness-training, `runs` where nothing was measured yet."""

    path: str
    """Below the Jupyter root, with forward slashes."""
    folder: Path
    kind: LabKind
    git: Repository
    repo: LabRepo | None
    runs: RunStore | None

    @property
    def ledger(self) -> Ledger:
        """What can be done in it; `Problem` for a repository that is read-only here."""
        if self.repo is None:
            raise Problem("read_only", f"{self.path} was trained with harness-training; its refs are shown read-only.")
        return Ledger(self.repo)

    def summary(self) -> LabSummary:
        """The lab in a list of labs."""
        return LabSummary(path=self.path, name=self.folder.name, kind=self.kind)

    def find(self, ref: str) -> Candidate | None:
        """The candidate that a ref or a commit id names, whatever became of it; None if it names no candidate."""
        return None if self.repo is None else self.repo.find(ref)

    def version(self) -> str:
        """Changes when a ref, a verdict, or the list of runs changes; not with each episode."""
        parts = foreign_version(self.folder) if self.repo is None else self.repo.version()
        if self.runs is not None:
            latest = self.runs.runs(limit=3)
            parts += "".join(f"|{run['id']}{run['status']}{run['finished']}" for run in latest)
        return hashlib.sha256(parts.encode()).hexdigest()[:20]

    def close(self) -> None:
        """Close the databases."""
        if self.repo is not None:
            self.repo.close()
        if self.runs is not None:
            self.runs.close()


class Labs:
    """Opens labs below one root and keeps the last few open. Safe to use from several threads."""

    def __init__(self, root: Path):
        self.root = root
        self._open: OrderedDict[tuple[object, ...], Lab] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, path: str) -> Lab:
        """The lab at `path` below the root; `Problem` or `StoreError` if it cannot be had."""
        folder = resolve_folder(self.root, path)
        guard_repository(self.root, folder, path)
        kind = kind_of(folder)
        if kind is None:
            raise Problem(
                "not_a_lab", f"{path!r} holds no lab; `harnesslab.Lab.open` makes one, for example in a notebook."
            )
        key = (folder, kind, *_identity(folder))
        with self._guard:
            lab = self._open.get(key)
            if lab is not None:
                self._open.move_to_end(key)
                return lab
        lab = _open_lab(path.strip("/") or ".", folder, kind)
        with self._guard:
            # Two threads may have opened the same lab; the later one wins, the earlier stays usable for its request.
            self._open[key] = lab
            old = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - MAX_OPEN)]
        for each in old:
            each.close()
        return lab

    def close(self) -> None:
        """Close every lab."""
        with self._guard:
            labs, self._open = list(self._open.values()), OrderedDict()
        for lab in labs:
            lab.close()


def _open_lab(path: str, folder: Path, kind: LabKind) -> Lab:
    if kind == "harness-training":
        return Lab(path, folder, kind, Repository(folder), None, None)
    repo = LabRepo.open(folder)
    # A look must not start a record: a lab without one gets it from the first run.
    recorded = (folder / ".harnesslab" / "lab.db").is_file()
    return Lab(path, folder, kind, repo, repo, RunStore.open(folder, mend=False) if recorded else None)


def _identity(folder: Path) -> list[int]:
    """Inodes that tell a lab from another that has taken its place (deleted and made anew, or a first record)."""
    numbers = []
    for place in (folder / ".git", folder / ".harnesslab" / "lab.db"):
        number = 0
        with contextlib.suppress(OSError):
            number = place.stat().st_ino
        numbers.append(number)
    return numbers
