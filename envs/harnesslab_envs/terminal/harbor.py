"""Reads Harbor's format, which Terminal-Bench 2 uses (https://harborframework.com/docs/tasks).

``task.toml``, ``instruction.md``, ``environment/``, ``solution/solve.sh``, ``tests/test.sh``; a task of several steps has
``[[steps]]`` and a folder ``steps/NAME`` for each in place of the last three. Keys that are not known are passed over, as
Harbor does; what is known and cannot be had here makes the task unplayable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harnesslab.rollout.taskfiles import TaskFileError, kind, read_toml
from harnesslab_envs.terminal import compose
from harnesslab_envs.terminal.spec import (
    HARBOR,
    PYTEST,
    Healthcheck,
    Part,
    Spec,
    Unplayable,
    Values,
    read_files,
    seconds,
    text_of,
    with_script,
    words,
)

TEST_SECONDS = 600.0
BUILD_SECONDS = 600.0
TEST, SOLVE = "test.sh", "solve.sh"
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:?-)([^}]*))?\}")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT])(?:I?B)?", re.IGNORECASE)
_MB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2}


def read(place: Path, values: Values, environ: Values) -> Spec:
    """The task in a folder; its name is left to the caller. Raises ConfigError."""
    source = place / "task.toml"
    facts = read_toml(source)
    agent, verifier, machine = (_table(facts, source, name) for name in ("agent", "verifier", "environment"))
    _refuse(facts, verifier, machine, source)
    shared = Part(
        instruction="",
        tests=read_files(place / "tests", values),
        script="",
        solution=read_files(place / "solution", values),
        solve="",
        agent_seconds=_timeout(agent, source, "agent", None),
        test_seconds=_timeout(verifier, source, "verifier", TEST_SECONDS) or TEST_SECONDS,
        environ=_environ(verifier, source, "verifier", environ),
        solution_environ=_environ(_table(facts, source, "solution"), source, "solution", environ),
        user=_user(agent, source, "agent"),
        test_user=_user(verifier, source, "verifier"),
    )
    steps = facts.get("steps") or []
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise TaskFileError(source, "must be a list of tables, [[steps]]", key="steps")
    if steps:
        parts = tuple(_steps(place, source, steps, shared, values, environ))
    else:
        instruction = _instruction(place / "instruction.md", values)
        parts = (_judged(replace(shared, instruction=instruction), place, place),)
    folder = place / "environment"
    file = folder / "Dockerfile"
    service = compose.read(folder, "main")
    return Spec(
        id="",
        family="",
        format=HARBOR,
        source=place,
        parts=parts,
        dockerfile=text_of(folder / service.dockerfile, values) if (folder / service.dockerfile).is_file() else "",
        dockerfile_name=str((folder / service.dockerfile).relative_to(place)) if file.is_file() else "",
        context=read_files(folder, values),
        build_args=service.build_args,
        build_seconds=seconds(machine.get("build_timeout_sec", BUILD_SECONDS), source, "environment.build_timeout_sec"),
        image=words(machine.get("docker_image") or service.image, source, "environment.docker_image"),
        environ={**service.environ, **_environ(machine, source, "environment", environ)},
        user=service.user,
        workdir=_workdir(machine, source) or service.workdir,
        cpus=_number(machine, source, "cpus"),
        memory_mb=_size(machine, source, "memory"),
        disk_mb=_size(machine, source, "storage"),
        network=_network(machine, source),
        healthcheck=_healthcheck(machine.get("healthcheck"), source, "environment.healthcheck"),
        final=_final(facts, source),
    )


def _steps(
    place: Path, source: Path, steps: list[dict[str, Any]], shared: Part, values: Values, environ: Values
) -> Iterator[Part]:
    for number, step in enumerate(steps):
        key = f"steps[{number}]"
        name = words(step.get("name"), source, f"{key}.name")
        folder = place / "steps" / name
        if not folder.resolve().is_relative_to(place.resolve()) or not folder.is_dir():
            raise TaskFileError(source, f"there is no folder steps/{name}", key=f"{key}.name")
        agent, verifier = _table(step, source, "agent", key), _table(step, source, "verifier", key)
        _refuse_verifier(verifier, source, f"{key}.verifier")
        part = replace(
            shared,
            instruction=_instruction(folder / "instruction.md", values),
            tests=read_files(folder / "tests", values).over(shared.tests),
            solution=read_files(folder / "solution", values),
            agent_seconds=_timeout(agent, source, f"{key}.agent", shared.agent_seconds),
            test_seconds=_timeout(verifier, source, f"{key}.verifier", shared.test_seconds) or shared.test_seconds,
            environ={**shared.environ, **_environ(verifier, source, f"{key}.verifier", environ)},
            user=_user(agent, source, f"{key}.agent") or shared.user,
            test_user=_user(verifier, source, f"{key}.verifier") or shared.test_user,
            need=_need(step.get("min_reward"), source, f"{key}.min_reward"),
            setup=read_files(folder / "workdir", values),
            healthcheck=_healthcheck(step.get("healthcheck"), source, f"{key}.healthcheck"),
        )
        yield _judged(part, folder, place)


def _judged(part: Part, folder: Path, place: Path) -> Part:
    """The part with the names of its scripts. Raises TaskFileError where there is nothing to judge it by."""
    if TEST not in part.tests and PYTEST not in part.tests:
        raise TaskFileError(folder / "tests" / TEST, f"is missing, and so is {PYTEST}")
    if TEST in part.tests:
        part = replace(part, tests=with_script(part.tests, TEST), script=TEST)
    if SOLVE in part.solution:
        part = replace(part, solution=with_script(part.solution, SOLVE), solve=SOLVE)
    return part


def _instruction(file: Path, values: Values) -> str:
    text = text_of(file, values).strip()
    if not text:
        raise TaskFileError(file, "the task has no instruction")
    return text


def _refuse(facts: Mapping[str, Any], verifier: Mapping[str, Any], machine: Mapping[str, Any], source: Path) -> None:
    _refuse_verifier(verifier, source, "verifier")
    if machine.get("os", "linux") != "linux":
        raise Unplayable(f"{source}, key 'environment.os': needs {machine['os']}, and there is only Linux")
    if machine.get("gpus"):
        raise Unplayable(f"{source}, key 'environment.gpus': needs a GPU, and the machine has none")
    if machine.get("tpu"):
        raise Unplayable(f"{source}, key 'environment.tpu': needs a TPU, and the machine has none")
    if machine.get("mcp_servers"):
        raise Unplayable(f"{source}, key 'environment.mcp_servers': the agent has no MCP servers here, only a shell")
    for table, name in ((machine, "environment"), (_table(facts, source, "agent"), "agent"), (verifier, "verifier")):
        if table.get("network_mode") == "allowlist" or table.get("allowed_hosts"):
            raise Unplayable(f"{source}, key '{name}.allowed_hosts': no list of allowed hosts can be kept here")


def _refuse_verifier(verifier: Mapping[str, Any], source: Path, key: str) -> None:
    if verifier.get("environment_mode", "shared") != "shared" or verifier.get("environment"):
        raise Unplayable(f"{source}, key '{key}.environment_mode': tests in a machine of their own are not supported")
    if verifier.get("collect"):
        raise Unplayable(f"{source}, key '{key}.collect': collecting from other services is not supported")


def _table(facts: Mapping[str, Any], source: Path, name: str, within: str = "") -> Mapping[str, Any]:
    value = facts.get(name, {})
    if not isinstance(value, dict):
        raise TaskFileError(source, f"must be a table, not {kind(value)}", key=f"{within}.{name}".strip("."))
    return value


def _timeout(table: Mapping[str, Any], source: Path, key: str, default: float | None) -> float | None:
    value = table.get("timeout_sec")
    return default if value is None else seconds(value, source, f"{key}.timeout_sec")


def _user(table: Mapping[str, Any], source: Path, key: str) -> str | None:
    value = table.get("user")
    if value is None or (isinstance(value, str | int) and not isinstance(value, bool)):
        return None if value is None else str(value)
    raise TaskFileError(source, f"must be a name or a number, not {kind(value)}", key=f"{key}.user")


def _environ(table: Mapping[str, Any], source: Path, key: str, environ: Values) -> dict[str, str]:
    """The variables of a table. ``${NAME:-default}`` takes a value that the user has given; nothing else of the host."""
    found: dict[str, str] = {}
    for name, value in _table(table, source, "env", key).items():
        text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        text = words(text, source, f"{key}.env.{name}")

        def put(match: re.Match[str], name: str = name) -> str:
            wanted, operator, default = match.groups()
            if wanted in environ and (environ[wanted] or operator != ":-"):
                return environ[wanted]
            if operator is None:
                raise Unplayable(
                    f"{source}, key '{key}.env.{name}': needs the variable {wanted}; pass it on with environ={{'{wanted}': ...}}"
                )
            return str(default)

        found[name] = _VARIABLE.sub(put, text)
    return found


def _number(table: Mapping[str, Any], source: Path, key: str) -> float | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise TaskFileError(source, "must be a number above 0", key=f"environment.{key}")
    return float(value)


def _size(table: Mapping[str, Any], source: Path, name: str) -> int | None:
    """MiB: ``memory_mb``, or the older ``memory = "2G"``."""
    if table.get(f"{name}_mb") is not None:
        return int(_number(table, source, f"{name}_mb") or 0)
    value = table.get(name)
    if value is None:
        return None
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise TaskFileError(source, "must be a size such as '512M' or '2G'", key=f"environment.{name}")
    return int(float(match.group(1)) * _MB[match.group(2).upper()])


def _network(machine: Mapping[str, Any], source: Path) -> bool:
    allowed = machine.get("allow_internet", True)
    if not isinstance(allowed, bool):
        raise TaskFileError(source, "must be true or false", key="environment.allow_internet")
    mode = machine.get("network_mode")
    return allowed if mode is None else mode != "no-network"


def _workdir(machine: Mapping[str, Any], source: Path) -> str | None:
    value = machine.get("workdir")
    return None if value is None else words(value, source, "environment.workdir")


def _healthcheck(value: Any, source: Path, key: str) -> Healthcheck | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("command"), str):
        raise TaskFileError(source, "must be a table with a command", key=key)
    names = ("interval", "timeout", "start_period", "start_interval")
    given = {name: value[f"{name}_sec"] for name in names if f"{name}_sec" in value}
    if any(isinstance(number, bool) or not isinstance(number, int | float) or number < 0 for number in given.values()):
        raise TaskFileError(source, "must give its times in seconds", key=key)
    retries = value.get("retries", 3)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 1:
        raise TaskFileError(source, "must be a whole number above 0", key=f"{key}.retries")
    return Healthcheck(value["command"], **{name: float(number) for name, number in given.items()}, retries=retries)


def _need(value: Any, source: Path, key: str) -> dict[str, float]:
    """The rewards that a step must reach: one number, or one a name."""
    if value is None:
        return {}
    needed = value if isinstance(value, dict) else {"reward": value}
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in needed.values()):
        raise TaskFileError(source, "must be a number, or a table of numbers", key=key)
    return {str(name): float(number) for name, number in needed.items()}


def _final(facts: Mapping[str, Any], source: Path) -> bool:
    strategy = facts.get("multi_step_reward_strategy", "mean")
    if strategy not in ("mean", "final"):
        raise TaskFileError(source, f"must be 'mean' or 'final', not {strategy!r}", key="multi_step_reward_strategy")
    return bool(strategy == "final")
