"""Benchmark data that a user downloads: where it is stored, and whether it is complete.

Each data set has a folder under ``HARNESSLAB_DATA`` or the user's data folder. Its files come from the public source
that the environment's ``data.json`` names, and take their place together once all of them have arrived, so that a
broken download leaves nothing half-done.

``HARNESSLAB_DATA_URL`` names a mirror that serves ``<url>/<data set>/<file>``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harnesslab.download import DownloadFailed, fetch, is_whole
from harnesslab.errors import ConfigError, EnvironmentUnavailable

SHOWN = 4
"""Names of missing files in an error."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file: its path in the folder, where it comes from, its size in bytes and its hash."""

    name: str
    url: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DataSet:
    """Some files that belong together, from one public source."""

    name: str
    title: str
    source: str
    licence: str
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class DataStatus:
    """The state of a data set. ``state`` is ``"here"``, ``"missing"`` or ``"changed"``: there are other files than the
    published ones, or not all of them."""

    dataset: DataSet
    folder: Path
    state: str


def _catalog() -> dict[str, DataSet]:
    """What the environments' ``data.json`` list. Each URL names a commit or a release, and the hash is that of its content."""
    home = importlib.util.find_spec("harnesslab_envs")
    places = [Path(place) for place in (home.submodule_search_locations or ())] if home is not None else []
    found = {}
    for file in sorted(file for place in places for file in place.glob("*/data.json")):
        name, fields = file.parent.name.replace("_", "-"), json.loads(file.read_text("utf-8"))
        found[name] = DataSet(name, **{**fields, "files": tuple(DataFile(**one) for one in fields["files"])})
    return found


CATALOG: Mapping[str, DataSet] = _catalog()


def data_dir() -> Path:
    """The folder under which data sets lie: ``HARNESSLAB_DATA``, else the user's data folder."""
    chosen = os.environ.get("HARNESSLAB_DATA")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("harnesslab", appauthor=False)) / "data"


def dataset(name: str) -> DataSet:
    """The data set of that name. Raises ConfigError with the known names."""
    try:
        return CATALOG[name]
    except KeyError:
        raise ConfigError(f"Unknown data set '{name}'. Available: {', '.join(sorted(CATALOG))}.") from None


def find(name: str, path: str | Path | None = None) -> Path:
    """The folder that holds the data set's files: ``path`` if given, else the one under :func:`data_dir`.

    Only the names are looked at, so that a person can use changed files on purpose. Raises
    EnvironmentUnavailable, saying what is missing and how to get it.
    """
    wanted = dataset(name)
    folder = Path(path).expanduser() if path is not None else data_dir() / name
    missing = [file.name for file in wanted.files if not (folder / file.name).is_file()]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise EnvironmentUnavailable(
            f"The data of '{name}' is not in {folder} (missing: {', '.join(missing[:SHOWN])}{more}). "
            f"Get it with: harnesslab data get {name} - or set HARNESSLAB_DATA to the folder that holds '{name}/'."
        )
    return folder


def status() -> list[DataStatus]:
    """The state of each known data set."""
    rows = []
    for wanted in CATALOG.values():
        folder = data_dir() / wanted.name
        if not (folder.is_dir() and any(folder.iterdir())):
            state = "missing"
        elif all(is_whole(folder / file.name, size=file.size, sha256=file.sha256) for file in wanted.files):
            state = "here"
        else:
            state = "changed"
        rows.append(DataStatus(wanted, folder, state))
    return rows


def get(name: str, *, base_url: str | None = None, progress: bool = True) -> Path:
    """Bring a data set into its folder and return the folder; files that are there and whole are kept.

    ``base_url`` (or ``HARNESSLAB_DATA_URL``) names a mirror. Raises EnvironmentUnavailable where a file cannot
    be had, is cut short or has another hash; the folder is then as it was before.
    """
    wanted = dataset(name)
    mirror = base_url or os.environ.get("HARNESSLAB_DATA_URL")
    folder = data_dir() / name
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        needed = [file for file in wanted.files if not is_whole(folder / file.name, size=file.size, sha256=file.sha256)]
        if needed:
            # Beside the target, so that the last step is a rename on one file system.
            with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as scratch:
                fetched = Path(scratch) / "files"
                _fetch_all(needed, fetched, f"{mirror.rstrip('/')}/{name}" if mirror else None, progress)
                _place(needed, fetched, folder)
    except OSError as error:
        raise EnvironmentUnavailable(f"The data of '{name}' cannot be written to {folder}: {error}") from error
    return folder


def _place(files: list[DataFile], fetched: Path, folder: Path) -> None:
    """Move what was fetched; where there was no folder in one step, as some data can be read in part, too."""
    if not folder.exists():
        fetched.rename(folder)
        return
    for file in files:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        (fetched / file.name).replace(folder / file.name)


def _fetch_all(files: list[DataFile], folder: Path, mirror: str | None, progress: bool) -> None:
    from tqdm.auto import tqdm

    total = sum(file.size for file in files)
    with tqdm(total=total, unit="B", unit_scale=True, desc="data", disable=not progress) as bar:
        for file in files:
            url = f"{mirror}/{file.name}" if mirror else file.url
            try:
                fetch(url, folder / file.name, size=file.size, sha256=file.sha256, bar=bar)
            except DownloadFailed as error:
                raise EnvironmentUnavailable(f"{error}. {_OTHER_WAYS}") from error


_OTHER_WAYS = (
    "Nothing was changed. A mirror can be named in HARNESSLAB_DATA_URL; files of your own go in HARNESSLAB_DATA."
)
