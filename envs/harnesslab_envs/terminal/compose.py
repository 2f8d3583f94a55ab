"""Reads what a ``docker-compose.yaml`` says of the one service that a task may have here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harnesslab.rollout.taskfiles import read_yaml, table
from harnesslab_envs.terminal.spec import Unplayable

NAMES = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
PASSED_OVER = frozenset(
    (
        "image",
        "container_name",
        "command",
        "build",
        "environment",
        "working_dir",
        "user",
        "pull_policy",
        "hostname",
        "stdin_open",
        "tty",
        "init",
        "restart",
        "labels",
        "platform",
        "deploy",
        "mem_limit",
        "memswap_limit",
        "cpus",
        "shm_size",
        "logging",
        "stop_grace_period",
        "networks",
        "healthcheck",
        "expose",
        "ports",
        "extra_hosts",
        "volumes",
    )
)
"""Keys of a service that a single machine needs nothing for, or that are read below."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)")
_OWN = {"T_BENCH_TEST_DIR": "/tests", "TEST_DIR": "/tests"}


@dataclass(frozen=True, slots=True)
class Service:
    """What of the service's settings counts on one machine."""

    dockerfile: str = "Dockerfile"
    build_args: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    workdir: str | None = None


def read(folder: Path, name: str) -> Service:
    """The service of that name in the folder's file, or the defaults. Raises Unplayable where one machine is not enough."""
    file = next((folder / one for one in NAMES if (folder / one).is_file()), None)
    if file is None:
        return Service()
    services = table(table(read_yaml(file) or {}, file).get("services") or {}, file)
    others = [other for other in services if other != name]
    if others:
        raise Unplayable(f"{file}: needs other containers ({', '.join(others)}), and there is one machine only")
    service = table(services.get(name) or {}, file)
    for key, value in service.items():
        if value and (key not in PASSED_OVER or (key == "volumes" and not _logs_only(value))):
            raise Unplayable(f"{file}, key '{key}': is not supported here")
    build = service.get("build") or {}
    build = table(build, file) if isinstance(build, dict) else {"context": build}
    if str(build.get("context", ".")).rstrip("/") not in (".", "", "${CONTEXT_DIR}") or build.get("target"):
        raise Unplayable(f"{file}, key 'build': is built from another folder, or to another stage")
    image = str(service.get("image") or "")
    return Service(
        dockerfile=str(build.get("dockerfile") or "Dockerfile"),
        build_args=_pairs(build.get("args")),
        image="" if "$" in image or build else image,
        environ={key: value for key, value in _pairs(service.get("environment")).items() if value},
        user=str(service["user"]) if service.get("user") is not None else None,
        workdir=str(service["working_dir"]) if service.get("working_dir") else None,
    )


def _logs_only(volumes: Any) -> bool:
    """Whether all volumes are those in which the official harness collects its logs."""
    return isinstance(volumes, list) and all("_LOGS_PATH" in str(volume) for volume in volumes)


def _pairs(given: Any) -> dict[str, str]:
    """``{NAME: value}``, written as a mapping or as a list of ``NAME=value``; unknown variables are empty."""
    items = given.items() if isinstance(given, dict) else [str(item).partition("=")[::2] for item in given or ()]
    return {
        str(key): _VARIABLE.sub(
            lambda match: _OWN.get(match.group(1) or match.group(3), match.group(2) or ""),
            "" if value is None else str(value).lower() if isinstance(value, bool) else str(value),
        )
        for key, value in items
    }
