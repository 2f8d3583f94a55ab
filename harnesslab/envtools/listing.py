"""What environments there are, which of them can be used, and how to get the others."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib.metadata import EntryPoint

from harnesslab.data import status
from harnesslab.errors import HarnesslabError
from harnesslab.rollout.env import SPLITS
from harnesslab.rollout.process.folder import EnvFolder, find_folder, folder_names
from harnesslab.rollout.process.load import how, install_command, not_installed
from harnesslab.rollout.registry import environments, load_environment


@dataclass(frozen=True, slots=True)
class EnvStatus:
    """One environment. ``runs``: ``this process``, ``own Python`` or ``process``; empty where it is not usable.

    ``note`` then says why, and ``command`` what to type, where that is known. ``tasks``: "search / gate / sealed", empty where
    they are not counted.
    """

    name: str
    title: str
    runs: str = ""
    tasks: str = ""
    note: str = ""
    command: str = ""


def list_environments(*, counts: bool = False) -> list[EnvStatus]:
    """All environments by name. Processes are started only for ``counts``."""
    rows = {name: _of_entry_point(point) for name, point in environments().items()}
    for name in folder_names():
        if name not in rows:
            rows[name] = _of_folder_named(name, counts)
    return [rows[name] for name in sorted(rows)]


def _of_entry_point(point: EntryPoint) -> EnvStatus:
    return _asked(point.name, _title(point), "this process")


def _title(point: EntryPoint) -> str:
    """The first sentence of its module; empty where that cannot be loaded."""
    try:
        words = inspect.getdoc(inspect.getmodule(point.load())) or ""
    except Exception:  # noqa: BLE001 - a package of others may raise anything
        return ""
    return " ".join(words.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".").replace("`", "")


def _of_folder_named(name: str, counts: bool) -> EnvStatus:
    try:
        folder = find_folder(name)
    except HarnesslabError as error:
        return EnvStatus(name, "", note=str(error))
    assert folder is not None, "it was just listed"
    return _of_folder(folder, counts)


def _of_folder(folder: EnvFolder, counts: bool) -> EnvStatus:
    name, runs, title = folder.name, how(folder), folder.manifest.title
    if not runs:
        return EnvStatus(name, title, note=not_installed(folder), command=install_command(folder))
    if counts or runs == "this process":
        return _asked(name, title, runs)
    missing = [row.dataset.name for row in status() if row.state == "missing"]
    for wanted in folder.manifest.data:
        if wanted in missing:
            command = f"harnesslab data get {wanted}"
            return EnvStatus(name, title, note=f"Its data is missing. Get it with: {command}", command=command)
    return EnvStatus(name, title, runs)


def _asked(name: str, title: str, runs: str) -> EnvStatus:
    """Load it and count its tasks."""
    try:
        environment = load_environment(name)
        return EnvStatus(name, title, runs, " / ".join(str(len(environment.tasks(split))) for split in SPLITS))
    except HarnesslabError as error:
        # The data of an environment has its name.
        command = f"harnesslab data get {name}"
        return EnvStatus(name, title, note=str(error), command=command if command in str(error) else "")
