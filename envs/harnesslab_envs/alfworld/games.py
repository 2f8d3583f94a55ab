"""Finds the official games and reads them: in a folder, in an archive, or where ``HARNESSLAB_DATA`` points.

A game is known by the last four parts of its path: ``valid_seen/TYPE-.../trial_.../game.tw-pddl``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from harnesslab.data import data_dir
from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable

FILE = "game.tw-pddl"
ARCHIVES = ("games.tar.xz", "json_2.1.3_tw-pddl.zip", "json_2.1.2_tw-pddl.zip")
FOLDERS = ("json_2.1.1", ".")
MAX_GAME = 16 << 20
"""Bytes of one game; the largest official one has a third of a megabyte."""
HOW = (
    "Get them with: harnesslab data get alfworld (37 MB) - or put a folder json_2.1.1 or a games.tar.xz into {folder}, or "
    "name it: load_environment('alfworld', games='/path')."
)


class Games(Protocol):
    """Some games by name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """The content of a game."""
        ...


class FolderGames:
    """Games as files below a folder."""

    def __init__(self, folder: Path):
        self._files = {key: file for file in folder.rglob(FILE) if (key := _key(file.as_posix()))}
        self.names = tuple(sorted(self._files))

    def read(self, name: str) -> bytes:
        """See :class:`Games`."""
        return self._files[name].read_bytes()


class ZipGames:
    """Games in a zip; each is read from there when it is played."""

    def __init__(self, file: Path):
        self._file = file
        with zipfile.ZipFile(file) as archive:
            self._members = {key: name for name in archive.namelist() if (key := _key(name))}
        self.names = tuple(sorted(self._members))

    def read(self, name: str) -> bytes:
        """See :class:`Games`."""
        with zipfile.ZipFile(self._file) as archive, archive.open(self._members[name]) as stream:
            return stream.read(MAX_GAME)


def find_games(path: str = "") -> Games:
    """The games at ``path``, or in the folder ``alfworld`` of the data folder.

    Raises EnvironmentUnavailable, saying where they were looked for and how to get them.
    """
    home = data_dir() / "alfworld"
    start = Path(path).expanduser() if path else home
    places = [start] if start.is_file() else [start / name for name in (*ARCHIVES, *FOLDERS)]
    try:
        for place in places:
            games = _open(place)
            if games is not None and games.names:
                return games
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise EnvironmentUnavailable(f"The games of 'alfworld' in {start} cannot be read: {error}") from error
    raise EnvironmentUnavailable(f"The games of 'alfworld' are not in {start}. {HOW.format(folder=home)}")


def parse(content: bytes, name: str) -> Mapping[str, Any]:
    """A game's data. Raises EnvironmentFault where the file is no solvable game."""
    try:
        data = json.loads(content)
    except ValueError as error:
        raise EnvironmentFault(f"The game {name} is no JSON: {error}") from error
    if not isinstance(data, dict) or not {"pddl_domain", "pddl_problem", "grammar"} <= set(data):
        raise EnvironmentFault(f"The game {name} lacks its domain, problem or grammar.")
    if data.get("solvable") is False:
        raise EnvironmentFault(f"The game {name} is marked as not solvable.")
    return data


def _open(place: Path) -> Games | None:
    if place.is_dir():
        return FolderGames(place)
    if not place.is_file():
        return None
    return ZipGames(place) if place.suffix == ".zip" else FolderGames(_unpacked(place))


def _unpacked(archive: Path) -> Path:
    """The folder with the games of a tar, which is unpacked once into the user's cache (50 MB).

    A tar can only be read from its start; each episode would wait for that.
    """
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "harnesslab" / "alfworld"
    target = cache / digest
    if target.is_dir():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    # Beside the target: several processes may do this at once, and the first to rename it wins.
    scratch = Path(tempfile.mkdtemp(prefix=".unpack-", dir=cache))
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                key = _key(member.name)
                stream = tar.extractfile(member) if key and member.isfile() else None
                if stream is not None:
                    file = scratch / key
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(stream.read(MAX_GAME))
        scratch.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _key(path: str) -> str:
    """The name of a game by its path in an archive; empty for other files and for paths that lead elsewhere."""
    parts = path.split("/")[-4:]
    return "/".join(parts) if len(parts) == 4 and parts[-1] == FILE and ".." not in parts else ""
