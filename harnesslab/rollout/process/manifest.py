"""What an environment's ``env.toml`` may say, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harnesslab.errors import ConfigError
from harnesslab.rollout.taskfiles import read_toml

Seconds = Annotated[float, Field(gt=0, le=3600)]
Megabytes = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PythonPart(_Part):
    """``[python]``: which Python it runs on, and with what.

    ``requires``: a version specifier. ``no_deps``: requirements that are installed without their dependencies, before
    requirements.txt. ``imports``: modules that, where they can be imported here, make a Python of its own needless
    (see ``in_process``). ``size_mb``: what an installation takes, roughly, told before it starts.
    """

    requires: str = ">=3.11"
    no_deps: list[str] = []
    imports: list[str] = []
    size_mb: Megabytes = 0


class DeadlinesPart(_Part):
    """``[process.deadlines]``: seconds that a request may take; see :class:`~.child.Deadlines`."""

    start: Seconds = 120
    tasks: Seconds = 120
    reset: Seconds = 60
    step: Seconds = 60
    close: Seconds = 10
    policy: Seconds = 120


class ProcessPart(_Part):
    """``[process]``: how its process runs.

    ``in_process``: it may also run in the kernel, when it needs no packages or its ``imports`` are there.
    ``memory_mb`` bounds each of its processes. ``environ`` is set, ``pass_environ`` names variables that are passed on.
    """

    in_process: bool = False
    memory_mb: Megabytes = 2048
    environ: dict[str, str] = {}
    pass_environ: list[str] = []
    deadlines: DeadlinesPart = DeadlinesPart()


class Manifest(_Part):
    """The whole file. ``factory`` is ``module:callable`` in the folder; ``data`` names data sets that it needs."""

    title: str
    source: str = ""
    licence: str = ""
    factory: Annotated[str, Field(pattern=r"^\w+(\.\w+)*:\w+$")] = "env:environment"
    data: list[str] = []
    python: PythonPart = PythonPart()
    process: ProcessPart = ProcessPart()


def read_manifest(path: Path) -> Manifest:
    """Read an env.toml. Raises ConfigError that names the file and the key."""
    try:
        return Manifest.model_validate(read_toml(path))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}, key '{key}': {first['msg']}") from error
