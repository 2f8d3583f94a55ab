"""What environments there are, which of them can be used, and how to get the others."""

from __future__ import annotations

from dataclasses import dataclass

from harnesslab.data import status
from harnesslab.errors import HarnesslabError
from harnesslab.rollout.env import SPLITS
from harnesslab.rollout.process.folder import EnvFolder, find_folder, folder_names
from harnesslab.rollout.process.load import how, not_installed
from harnesslab.rollout.registry import environments, load_environment


@dataclass(frozen=True, slots=True)
class EnvStatus:
    """One environment. ``runs``: ``this process``, ``own Python`` or ``process``; empty where it is not usable, and
    then ``note`` says what to do. ``tasks``: "search / gate / sealed", empty where they are not counted."""

    name: str
    title: str
    runs: str
    tasks: str
    note: str


def list_environments(*, counts: bool = False) -> list[EnvStatus]:
    """All environments by name. Processes are started only for ``counts``."""
    rows = {name: _of_entry_point(name) for name in environments()}
    for name in folder_names():
        if name not in rows:
            rows[name] = _of_folder_named(name, counts)
    return [rows[name] for name in sorted(rows)]


def _of_entry_point(name: str) -> EnvStatus:
    tasks, note = _counted(name)
    return EnvStatus(name, "", "" if note else "this process", tasks, note)


def _of_folder_named(name: str, counts: bool) -> EnvStatus:
    try:
        folder = find_folder(name)
    except HarnesslabError as error:
        return EnvStatus(name, "", "", "", str(error))
    assert folder is not None, "it was just listed"
    return _of_folder(folder, counts)


def _of_folder(folder: EnvFolder, counts: bool) -> EnvStatus:
    runs, title = how(folder), folder.manifest.title
    if not runs:
        return EnvStatus(folder.name, title, "", "", not_installed(folder))
    missing = [
        row.dataset.name for row in status() if row.dataset.name in folder.manifest.data and row.state == "missing"
    ]
    if missing:
        note = "Its data is missing. Get it with: " + "; ".join(f"harnesslab data get {name}" for name in missing)
        return EnvStatus(folder.name, title, "", "", note)
    tasks, note = _counted(folder.name) if counts or runs == "this process" else ("", "")
    return EnvStatus(folder.name, title, "" if note else runs, tasks, note)


def _counted(name: str) -> tuple[str, str]:
    """(tasks by split, what is wrong)"""
    try:
        environment = load_environment(name)
        return " / ".join(str(len(environment.tasks(split))) for split in SPLITS), ""
    except HarnesslabError as error:
        return "", str(error)
