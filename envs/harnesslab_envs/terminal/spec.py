"""A task, read from its folder without running any of it, and how its parts are found.

Which folder holds which format is decided here; :mod:`.harbor` and :mod:`.termbench` read them. A folder may also hold
``variants.json``, which is ours: ``{"name": {"KEY": "value"}}``. Each entry is a task of its own, in which ``{{KEY}}``
stands for the value in every text of the folder, tests and solution included.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from harnesslab.errors import ConfigError
from harnesslab.rollout.taskfiles import TaskFileError, decode, kind, read_bytes, read_json

MAX_FILE = 16 << 20
"""Bytes of one file of a task, and of all files of a folder's part (tests, say) times four."""
PYTEST = "test_outputs.py"
HARBOR, TERMINAL_BENCH = "harbor", "terminal-bench"
SOLUTIONS = {HARBOR: "/solution", TERMINAL_BENCH: "/oracle"}
"""Where the official harnesses put a task's solution."""


class Unplayable(ConfigError):
    """The task asks for something that cannot be had here; says what."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files by their relative path; ``executable`` and ``links`` (path to target) name some of them."""

    content: Mapping[str, bytes] = field(default_factory=dict)
    executable: frozenset[str] = frozenset()
    links: Mapping[str, str] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        return name in self.content

    def over(self, other: Files) -> Files:
        """The two together; those of this one where both have one of a name."""
        return Files(
            {**other.content, **self.content},
            (other.executable - self.content.keys()) | self.executable,
            {**other.links, **self.links},
            other.folders | self.folders,
        )

    def facts(self) -> list[Any]:
        """All of it as plain values that are equal for equal files, in every process."""
        files = [
            [name, hashlib.sha256(content).hexdigest(), name in self.executable]
            for name, content in sorted(self.content.items())
        ]
        return [files, sorted(self.links.items()), sorted(self.folders)]


@dataclass(frozen=True, slots=True)
class Part:
    """What is told, and how it is judged: the task as a whole, or one of its steps.

    ``script`` and ``solve`` are paths in ``tests`` and ``solution``, empty where there is none. ``need`` holds the rewards
    without which the next part is not reached. ``environ`` is that of the tests.
    """

    instruction: str
    tests: Files
    script: str
    solution: Files
    solve: str
    agent_seconds: float | None
    test_seconds: float
    environ: Mapping[str, str] = field(default_factory=dict)
    solution_environ: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    test_user: str | None = None
    need: Mapping[str, float] = field(default_factory=dict)
    setup: Files = field(default_factory=Files)
    same_shell: bool = False
    healthcheck: Healthcheck | None = None


@dataclass(frozen=True, slots=True)
class Healthcheck:
    """A command that must succeed before the agent begins, and how often and how long it is tried (seconds)."""

    command: str
    interval: float = 5.0
    timeout: float = 30.0
    start_period: float = 0.0
    start_interval: float = 5.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class Spec:
    """A task, read. ``context`` holds the files that the Dockerfile may copy; ``environ``, ``user`` and ``workdir`` are what
    the task's settings add to its image. ``final``: the last part's reward counts, else the mean of all."""

    id: str
    family: str
    format: str
    source: Path
    parts: tuple[Part, ...]
    dockerfile: str
    dockerfile_name: str
    context: Files
    build_args: Mapping[str, str] = field(default_factory=dict)
    build_seconds: float = 600.0
    image: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    workdir: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    disk_mb: int | None = None
    network: bool = True
    healthcheck: Healthcheck | None = None
    final: bool = False

    @property
    def instruction(self) -> str:
        """What the agent is told first."""
        return self.parts[0].instruction

    def solution_command(self, number: int) -> str:
        """The command that runs the solution of a part; empty where there is none. Its last word can only be told by who
        has the solution."""
        part = self.parts[number]
        if not part.solve:
            return ""
        secret = hashlib.sha256(f"{self.id} {number}".encode())
        for name, content in sorted(part.solution.content.items()):
            secret.update(f"\0{name}\0".encode() + content)
        return f"bash {SOLUTIONS[self.format]}/{part.solve} # {secret.hexdigest()}"

    def digest(self) -> str:
        """A hash of all that the task is, the same in every process."""
        facts = [_plain(getattr(self, name)) for name in self.__slots__ if name != "source"]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Folder:
    """The tasks of a folder with their variants, in the order of their names; ``unplayable`` says why others are none."""

    tasks: list[tuple[str, Spec]] = field(default_factory=list)
    unplayable: dict[str, str] = field(default_factory=dict)


Values = Mapping[str, str]
Check = Callable[[Spec], None]
"""Raises ConfigError where the machine at hand cannot follow the task."""


def read_folder(folder: Path, environ: Values | None = None, check: Check = lambda _: None) -> Folder:
    """Every task below ``folder``, or the one task that it is. A task that cannot be used does not keep others from it.

    ``environ`` are the values that tasks may ask of the host. Raises ConfigError where there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"There is no folder of tasks at {folder}.")
    found = Folder()
    places = [folder] if _is_task(folder) else sorted(place for place in folder.iterdir() if _is_task(place))
    for place in places:
        try:
            variants = _variants(place)
        except ConfigError as error:
            found.unplayable[place.name] = str(error)
            continue
        for name, values in variants.items():
            task_id = f"{place.name}-{name}" if name else place.name
            try:
                spec = _read(place, task_id, values, environ or {})
                check(spec)
                found.tasks.append((name, spec))
            except ConfigError as error:
                found.unplayable[task_id] = str(error)
    return found


def _is_task(place: Path) -> bool:
    return (place / "task.yaml").is_file() or (place / "task.yml").is_file() or (place / "task.toml").is_file()


def _read(place: Path, task_id: str, values: Values, environ: Values) -> Spec:
    from harnesslab_envs.terminal import harbor, termbench

    reader = harbor.read if (place / "task.toml").is_file() else termbench.read
    return replace(reader(place, values, environ), id=task_id, family=place.name)


def _variants(place: Path) -> dict[str, dict[str, str]]:
    file = place / "variants.json"
    if not file.is_file():
        return {"": {}}
    loaded = read_json(file)
    right = isinstance(loaded, dict) and all(
        isinstance(values, dict) and all(isinstance(value, str) for value in values.values())
        for values in loaded.values()
    )
    if not right or not loaded:
        raise TaskFileError(file, "must be an object of objects of texts: {name: {KEY: value}}")
    return dict(loaded)


def read_files(folder: Path, values: Values, hidden: tuple[str, ...] = ()) -> Files:
    """The files below a folder, without those in ``hidden``. Links that lead out are left out; others stay links."""
    content: dict[str, bytes] = {}
    links: dict[str, str] = {}
    executable, folders = set(), set()
    size = 0
    root = _real(folder)
    for file in sorted(folder.rglob("*")) if folder.is_dir() else ():
        relative = file.relative_to(folder)
        if relative.parts[0] in hidden or "__pycache__" in relative.parts or not _real(file).is_relative_to(root):
            continue
        name = fill(PurePosixPath(relative).as_posix(), values)
        if file.is_symlink():
            links[name] = file.readlink().as_posix()
        elif file.is_dir():
            folders.add(name)
        elif file.is_file():
            data = read_bytes(file)
            size += len(data)
            if len(data) > MAX_FILE or size > 4 * MAX_FILE:
                raise TaskFileError(file, f"the files of a task are limited to {MAX_FILE >> 20} MiB each")
            content[name] = _fill_bytes(data, values)
            if file.stat().st_mode & 0o100:
                executable.add(name)
    return Files(content, frozenset(executable), links, frozenset(folders))


def _real(path: Path) -> Path:
    """Where a path leads; unlike ``Path.resolve``, a link in a loop leads to itself."""
    return Path(os.path.realpath(path))


def with_script(files: Files, name: str) -> Files:
    """The same with one file as a script that bash can run, whatever editor wrote it: no mark, lines that end with LF."""
    data = files.content[name].removeprefix(b"\xef\xbb\xbf")
    return replace(files, content={**files.content, name: data.replace(b"\r\n", b"\n")})


def text_of(file: Path, values: Values) -> str:
    """The text of a task's file. Raises TaskFileError."""
    return fill(decode(read_bytes(file), file), values)


def fill(text: str, values: Values) -> str:
    """A text with the values of its variant."""
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", value)
    return text


def seconds(value: Any, source: Path, key: str) -> float:
    """A timeout. Raises TaskFileError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e7:
        raise TaskFileError(source, f"must be a number of seconds above 0, not {_shown(value)}", key=key)
    return float(value)


def words(value: Any, source: Path, key: str) -> str:
    """A text. Raises TaskFileError."""
    if not isinstance(value, str):
        raise TaskFileError(source, f"must be a text, not {kind(value)}", key=key)
    return value


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else kind(value)


def _fill_bytes(content: bytes, values: Values) -> bytes:
    if not values:
        return content
    try:
        return fill(content.decode("utf-8"), values).encode("utf-8")
    except UnicodeDecodeError:
        return content


def _plain(value: Any) -> Any:
    if isinstance(value, Files):
        return value.facts()
    if isinstance(value, Part | Healthcheck):
        return [_plain(getattr(value, name)) for name in value.__slots__]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value
