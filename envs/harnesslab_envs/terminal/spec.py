"""Reads a task's folder, in either of the two published formats, without running any of it.

Terminal-Bench 1: ``task.yaml`` (instruction), ``Dockerfile``, ``solution.sh``, ``run-tests.sh``, ``tests/``.
Harbor, which Terminal-Bench 2 uses: ``task.toml``, ``instruction.md``, ``environment/Dockerfile``,
``solution/solve.sh``, ``tests/test.sh``.

A folder may also hold ``variants.json``, which is ours: ``{"name": {"KEY": "value"}}``. Each entry is a task of its own,
in which ``{{KEY}}`` stands for the value in every text of the folder, tests and solution included.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from harnesslab.errors import ConfigError

MAX_FILE = 4 << 20
"""Bytes of one file of a task, and of all files of a folder's part (tests, say) times eight."""
PYTEST = "test_outputs.py"
_NOT_COPIED = ("tests", "solution.sh", "solution.yaml", "run-tests.sh", "task.yaml", "variants.json")
"""Where the Dockerfile lies beside the tests, COPY does not reach what gives the task away."""
TEST_SECONDS = 60.0
MAX_TEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Build:
    """One line of the Dockerfile: ``what`` is ``workdir``, ``run``, ``env`` or ``copy``."""

    what: str
    line: int
    text: str = ""
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Spec:
    """A task, read. ``tests`` and ``context`` are files by relative path; ``script`` runs the tests where there is no
    ``test_outputs.py`` for pytest. ``dockerfile`` is the text that ``build`` holds the lines of; ``image`` one that is
    published for the task; ``executable`` names files of the context that can be run."""

    id: str
    family: str
    instruction: str
    build: tuple[Build, ...]
    context: Mapping[str, bytes]
    tests: Mapping[str, bytes]
    script: str
    solution: str
    test_seconds: float
    dockerfile: str = field(default="", repr=False)
    image: str = field(default="", repr=False)
    executable: frozenset[str] = field(default=frozenset(), repr=False)


def read_folder(folder: Path, *, follow: bool = True) -> Iterator[tuple[str, Spec]]:
    """(variant, task) of every task below ``folder``, in the order of their names; the variant is empty where there
    is just one. Raises ConfigError that names the file where a task cannot be used.

    Without ``follow`` the lines of the Dockerfiles are not read, as an engine does that; all files come along for it.
    """
    if not folder.is_dir():
        raise ConfigError(f"There is no folder of tasks at {folder}.")
    for place in sorted(folder.iterdir()):
        if (place / "task.yaml").is_file() or (place / "task.toml").is_file():
            variants = _variants(place)
            for name, values in variants.items():
                yield name, _read(place, f"{place.name}-{name}" if name else place.name, values, follow)


def _variants(place: Path) -> dict[str, dict[str, str]]:
    file = place / "variants.json"
    if not file.is_file():
        return {"": {}}
    try:
        loaded = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} is no JSON: {error}") from error
    right = isinstance(loaded, dict) and all(
        isinstance(values, dict) and all(isinstance(value, str) for value in values.values())
        for values in loaded.values()
    )
    if not right or not loaded:
        raise ConfigError(f"{file} must be an object of objects of texts: {{name: {{KEY: value}}}}.")
    return dict(loaded)


def _read(place: Path, task_id: str, values: Mapping[str, str], follow: bool) -> Spec:
    harbor = (place / "task.toml").is_file()
    source = place / ("task.toml" if harbor else "task.yaml")
    facts = _facts(source)
    if harbor:
        instruction, context = _text(place / "instruction.md"), place / "environment"
        solution, script = place / "solution" / "solve.sh", place / "tests" / "test.sh"
        seconds = _get(facts, "verifier").get("timeout_sec", TEST_SECONDS)
    else:
        instruction, context = facts.get("instruction", ""), place
        solution, script = place / "solution.sh", place / "run-tests.sh"
        seconds = facts.get("max_test_timeout_sec", TEST_SECONDS)
    if not isinstance(instruction, str) or not instruction.strip():
        raise ConfigError(f"{source}: the task has no instruction.")
    if not isinstance(seconds, int | float) or seconds <= 0:
        raise ConfigError(f"{source}: the tests' timeout must be a number of seconds.")
    tests = _files(place / "tests", values)
    if PYTEST not in tests and not script.is_file():
        raise ConfigError(f"{place}: there is neither tests/{PYTEST} nor {script.relative_to(place)}.")
    file = context / "Dockerfile"
    dockerfile = _fill(_text(file), values) if file.is_file() else ""
    build = tuple(_dockerfile(dockerfile, file)) if follow else ()
    copies = not follow or any(step.what == "copy" for step in build)
    hidden = () if harbor else _NOT_COPIED
    return Spec(
        id=task_id,
        family=place.name,
        instruction=_fill(instruction, values).strip(),
        build=build,
        context=_files(context, values, hidden) if copies else {},
        tests=tests,
        script=_fill(_text(script), values) if script.is_file() else "",
        solution=_fill(_text(solution), values) if solution.is_file() else "",
        test_seconds=min(float(seconds), MAX_TEST_SECONDS),
        dockerfile=dockerfile,
        image=str(_get(facts, "environment").get("docker_image", "")),
        executable=_executable(context, values) if copies else frozenset(),
    )


def _facts(source: Path) -> dict[str, Any]:
    text = _text(source)
    try:
        loaded = tomllib.loads(text) if source.suffix == ".toml" else yaml.safe_load(text)
    except (tomllib.TOMLDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{source} cannot be read: {error}") from error
    if not isinstance(loaded, dict):
        raise ConfigError(f"{source} must hold keys and values.")
    return loaded


def _get(facts: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = facts.get(key)
    return part if isinstance(part, dict) else {}


def _dockerfile(text: str, source: Path) -> Iterator[Build]:
    """The lines that can be followed without Docker; FROM, EXPOSE, LABEL and the like are passed over."""
    number = 0
    pending = ""
    for raw in text.splitlines():
        number += 1
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        pending += raw.strip()
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        word, _, rest = pending.partition(" ")
        pending, rest = "", rest.strip()
        step = word.upper()
        if step == "WORKDIR":
            yield Build("workdir", number, rest)
        elif step == "RUN":
            yield Build("run", number, rest)
        elif step == "ENV":
            yield Build("env", number, values=tuple(_pairs(rest)))
        elif step in ("COPY", "ADD"):
            parts = [part for part in shlex.split(rest) if not part.startswith("--")]
            if len(parts) < 2 or rest.startswith("["):
                raise ConfigError(f"{source}, line {number}: write {step} as '{step} SOURCE TARGET'.")
            yield Build("copy", number, values=tuple((name, parts[-1]) for name in parts[:-1]))


def _pairs(rest: str) -> Iterator[tuple[str, str]]:
    if "=" not in rest.split(" ", 1)[0]:
        name, _, value = rest.partition(" ")
        yield name, value.strip()
        return
    for part in shlex.split(rest):
        name, _, value = part.partition("=")
        yield name, value


def _files(folder: Path, values: Mapping[str, str], hidden: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The files below a folder by relative path, without those that lie in ``hidden``. Links out are not followed."""
    found: dict[str, bytes] = {}
    size = 0
    for file in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()) or "__pycache__" in file.parts:
            continue
        if file.relative_to(folder).parts[0] in hidden:
            continue
        content = file.read_bytes()
        size += len(content)
        if len(content) > MAX_FILE or size > 8 * MAX_FILE:
            raise ConfigError(f"{file}: the files of a task are limited to {MAX_FILE >> 20} MiB each.")
        name = PurePosixPath(file.relative_to(folder)).as_posix()
        found[_fill(name, values)] = _fill_bytes(content, values)
    return found


def _executable(folder: Path, values: Mapping[str, str]) -> frozenset[str]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.stat().st_mode & 0o100)
    return frozenset(_fill(file.relative_to(folder).as_posix(), values) for file in files)


def _fill_bytes(content: bytes, values: Mapping[str, str]) -> bytes:
    if not values:
        return content
    try:
        return _fill(content.decode("utf-8"), values).encode("utf-8")
    except UnicodeDecodeError:
        return content


def _fill(text: str, values: Mapping[str, str]) -> str:
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", value)
    return text


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
