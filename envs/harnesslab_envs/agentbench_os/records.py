"""Reads AgentBench's files: what is set up, what is asked, and how the answer is checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.data import data_dir
from harnesslab.errors import EnvironmentUnavailable
from harnesslab.rollout.taskfiles import TaskFileError, kind, parse_json, read_json, read_text, table

TRAINING = "train_0317/training.json"
SHARED_CHECKS = "7"
"""The folder of scripts that the training tasks use."""
HOW = (
    "Get it with: harnesslab data get agentbench-os - or name the folder of a clone: "
    "load_environment('agentbench-os', data='/path/AgentBench/data/os_interaction')."
)


@dataclass(frozen=True, slots=True)
class Script:
    """A program of a task: ``language`` is ``bash`` or ``python``."""

    code: str
    language: str = "bash"


@dataclass(frozen=True, slots=True)
class Record:
    """One task. ``checks`` are run in turn, None standing for ``example``, the published solution; where there are
    none, the answer must be ``match``."""

    id: str
    source: str
    family: str
    instruction: str
    init: tuple[Script, ...]
    start: str
    checks: tuple[Script | None, ...]
    example: Script | None
    match: str | None


def find_data(path: str = "") -> Path:
    """The folder with the published files. Raises EnvironmentUnavailable, saying where it was looked for."""
    folder = Path(path).expanduser() if path else data_dir() / "agentbench-os"
    scripts = (folder / "scripts.json").is_file() or (folder / "scripts").is_dir()
    if not (scripts and (folder / "data" / "dev.json").is_file()):
        raise EnvironmentUnavailable(f"The data of 'agentbench-os' is not in {folder}. {HOW}")
    return folder


def read_records(folder: Path) -> tuple[tuple[Record, ...], str]:
    """All tasks, and a hash of what was read. Raises EnvironmentUnavailable where a file is not what was published."""
    digest = hashlib.sha256()
    used: dict[str, str] = {}
    records: list[Record] = []
    try:
        scripts = _scripts(folder)
        for source, category, file in _files(folder):
            text = read_text(file)
            digest.update(text.encode())
            loaded = parse_json(text, file)
            for number, item in enumerate(loaded if isinstance(loaded, list) else [loaded]):
                name = f"{source}-{category}-{file.stem}-{number}"
                try:
                    records.append(_record(table(item, file), name, source, _Scripts(category, scripts, used)))
                except KeyError as error:
                    raise TaskFileError(file, f"task {number} (from 0) lacks this key", key=error.args[0]) from error
                except _Odd as error:
                    raise TaskFileError(file, f"task {number} (from 0): {error}") from error
    except TaskFileError as error:
        raise TaskFileError(error.path, f"{error.what}. {HOW}", line=error.line, key=error.key) from error
    # Not all scripts: the repository has more than its tasks name, and a copy may do without.
    digest.update(json.dumps(used, sort_keys=True).encode())
    return tuple(records), digest.hexdigest()[:12]


def _files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """(source, category, file); the source is ``dev``, ``test`` or ``train``."""
    yield "dev", "dev", folder / "data" / "dev.json"
    for place in sorted((folder / "data").iterdir()):
        if place.name.isdigit():
            for file in sorted(place.glob("*.json")):
                yield "test", place.name, file
    if (folder / TRAINING).is_file():
        yield "train", SHARED_CHECKS, folder / TRAINING


def _scripts(folder: Path) -> dict[str, str]:
    if (folder / "scripts.json").is_file():
        loaded = table(read_json(folder / "scripts.json"), folder / "scripts.json")
        return {name: str(text) for name, text in loaded.items()}
    root = folder / "scripts"
    files = [file for file in sorted(root.rglob("*")) if file.suffix in (".sh", ".py")]
    return {file.relative_to(root).as_posix(): read_text(file) for file in files}


@dataclass(frozen=True, slots=True)
class _Scripts:
    """Reads the several ways in which a task names its programs, and notes in ``used`` which files it took."""

    category: str
    files: Mapping[str, str]
    used: dict[str, str]

    def one(self, given: Any) -> Script:
        """A text is bash; an object holds its code or the name of a file."""
        if isinstance(given, str):
            return Script(given)
        given = _object(given, "a script")
        code = given["code"] if "code" in given else self._file(str(given["file"]))
        return Script(str(code), str(given.get("language", "bash")))

    def several(self, given: Any) -> tuple[Script | None, ...]:
        """None stays None."""
        items = [] if given is None else given if isinstance(given, list) else [given]
        return tuple(None if item is None else self.one(item) for item in items)

    def _file(self, name: str) -> str:
        path = f"{self.category}/{name}"
        if path not in self.files:
            raise _Odd(f"there is no script {path}")
        self.used[path] = self.files[path]
        return self.files[path]


class _Odd(Exception):
    """A part of a task is not what was published."""


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Odd(f"{what} is {kind(value)}, not an object")
    return value


def _record(item: Mapping[str, Any], name: str, source: str, scripts: _Scripts) -> Record:
    evaluation, create = _object(item["evaluation"], "the key 'evaluation'"), item.get("create")
    # In two tasks "create" holds a copy of the checks by mistake; it sets nothing up.
    init = scripts.several(create.get("init")) if isinstance(create, dict) else ()
    example = evaluation.get("example", item.get("example"))
    match = evaluation.get("match")
    return Record(
        id=name,
        source=source,
        family=source if source != "test" else f"test-{scripts.category}",
        instruction=str(item["description"]),
        init=tuple(script for script in init if script is not None),
        start=str(item.get("start", "")),
        checks=scripts.several(evaluation.get("check")),
        example=None if example is None else scripts.one(example),
        match=None if match is None else str(match),
    )
