"""What a task's machine is made with: bubblewrap and this system's programs, or a container engine and an image."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zipfile
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable
from harnesslab_envs.sandbox import (
    Confined,
    Container,
    EngineError,
    Limits,
    Machine,
    find_engine,
    missing,
    module_place,
    python_inside,
    usable,
)
from harnesslab_envs.terminal.building import Builder
from harnesslab_envs.terminal.dockerfile import Dockerfile
from harnesslab_envs.terminal.grade import Tools
from harnesslab_envs.terminal.spec import Spec, Unplayable
from harnesslab_envs.terminal.standins import MODULES

ENGINES = ("auto", "bubblewrap", "docker")
NETWORKS = ("build", "none", "all")
OURS = "/opt/harnesslab"
"""Where a container gets :data:`MODULES` when the agent has finished."""
MOST_DISK_MB = 4_096
"""A machine's files are in memory: a task that asks for more disk gets this."""
_LAUNCH, _ARCHIVE = f"{OURS}/launch.py", f"{OURS}/modules.zip"
# By path, so that no module of the agent's folder comes first; -P would do that, and older Pythons lack it.
_LAUNCHER = b"import sys\nsys.path[0] += '/modules.zip'\nimport pytest\nsys.exit(pytest.console_main())\n"
_PROBE = (
    "import sys, importlib.util as util; "
    "print('ours' if sys.version_info >= (3, 11) else 'own' if util.find_spec('pytest') else '', sys.executable)"
)


class Backend(Protocol):
    """Makes machines. ``tag`` is what it adds to the environment's version."""

    tag: str

    def missing(self) -> str:
        """Why it cannot be used here, and what to do; empty where it can."""
        ...

    def check(self, spec: Spec) -> None:
        """Raises Unplayable where it cannot follow the task, as far as that is seen without building it."""
        ...

    def machine(self, spec: Spec) -> Confined:
        """A fresh machine as the task's Dockerfile says. Raises EnvironmentFault where that cannot be."""
        ...

    def tools(self, machine: Confined, spec: Spec) -> Tools:
        """What runs the tests in the machine; called when the agent has finished."""
        ...


class Bubblewrap:
    """This system's programs under a copy-on-write layer."""

    tag = ""

    def __init__(self, limits: Limits):
        self._limits = limits

    def missing(self) -> str:
        """See :class:`Backend`."""
        reason = missing()
        return f'{reason} Or start Docker, for load_environment("terminal", engine="docker").' if reason else ""

    def check(self, spec: Spec) -> None:
        """See :class:`Backend`."""
        if spec.image and not spec.dockerfile:
            raise Unplayable(f"{spec.source}: runs on the image {spec.image}, which only a container engine can fetch")
        Dockerfile(spec)
        if spec.memory_mb and spec.memory_mb > (total := _memory_mb()):
            raise Unplayable(f"{spec.source}: asks for {spec.memory_mb} MiB of memory, and this computer has {total}")

    def machine(self, spec: Spec) -> Confined:
        """See :class:`Backend`."""
        limits = asked(self._limits, spec)

        def make() -> Machine:
            return Machine(limits, modules=MODULES)

        machine = make()
        try:
            Builder(Dockerfile(spec), make).build(machine)
        except BaseException:
            machine.close()
            raise
        return machine

    def tools(self, machine: Confined, spec: Spec) -> Tools:
        """See :class:`Backend`."""
        return Tools(pytest=(python_inside(), "-P", "-m", "pytest"))


class Docker:
    """Images that an engine builds from the tasks' Dockerfiles, once for each content. ``network`` is one of
    :data:`NETWORKS`: who has it."""

    tag = ".docker"

    def __init__(self, limits: Limits, network: str):
        self._limits, self._network = limits, network
        self._python: dict[str, list[str]] = {}

    def missing(self) -> str:
        """See :class:`Backend`."""
        try:
            find_engine()
        except EnvironmentUnavailable as error:
            return str(error)
        return ""

    def check(self, spec: Spec) -> None:
        """See :class:`Backend`."""
        if not spec.dockerfile and not spec.image:
            raise Unplayable(f"{spec.source}: has neither a Dockerfile nor a docker_image")

    def machine(self, spec: Spec) -> Confined:
        """See :class:`Backend`."""
        engine = find_engine()
        image = spec.image
        if spec.dockerfile:
            files = spec.context
            context = {
                name: (data, 0o755 if name in files.executable else 0o644) for name, data in files.content.items()
            }
            context["Dockerfile"] = (spec.dockerfile.encode(), 0o644)
            image = image_name(spec)
            try:
                engine.build(
                    image,
                    context,
                    network=self._network != "none",
                    seconds=spec.build_seconds,
                    args=spec.build_args,
                )
            except EngineError as error:
                raise EnvironmentFault(f"the image of the task {spec.id} cannot be built: {error}") from error
        machine = Container(
            engine,
            image,
            asked(self._limits, spec),
            network=self._network == "all" and spec.network,
            cpus=spec.cpus or 1,
            environ=spec.environ,
            cwd=spec.workdir or "",
        )
        machine.user = spec.user or ""
        try:
            if spec.id not in self._python:
                done = machine.run(f'python3 -c "{_PROBE}"', keep_state=False)
                self._python[spec.id] = done.output.split() if not done.code else []
            if not self._python[spec.id] and not all(part.script for part in spec.parts):
                raise EnvironmentFault(
                    f"the image of the task {spec.id} has neither Python 3.11 nor pytest, which run its tests"
                )
        except BaseException:
            machine.close()
            raise
        return machine

    def tools(self, machine: Confined, spec: Spec) -> Tools:
        """See :class:`Backend`. Where tests have a network, nothing stands in: the script installs what it needs."""
        kind = self._python[spec.id]
        if (self._network == "all" and spec.network) or not kind:
            return Tools(offline=False)
        if kind[0] not in ("ours", "own"):
            return Tools(python=kind[0])
        machine.run(f"rm -rf {OURS}", keep_state=False)
        machine.put({_LAUNCH: _LAUNCHER} | ({_ARCHIVE: _modules()} if kind[0] == "ours" else {}))
        return Tools((kind[1], _LAUNCH), kind[1], _ARCHIVE if kind[0] == "ours" else "")


def asked(limits: Limits, spec: Spec) -> Limits:
    """The limits of a machine for the task: those of the user, or what the task asks for beyond them."""
    memory = max(limits.memory_mb, spec.memory_mb or 0)
    return replace(limits, memory_mb=memory, disk_mb=max(limits.disk_mb, min(spec.disk_mb or 0, MOST_DISK_MB)))


def _memory_mb() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def choose(engine: str, limits: Limits, network: str = "build") -> Backend:
    """The backend of a name; ``"auto"`` is bubblewrap where it works, else a container engine where one answers."""
    if engine not in ENGINES:
        raise ConfigError(f"terminal has no engine {engine!r}; it has {', '.join(ENGINES)}.")
    if network not in NETWORKS:
        raise ConfigError(f"terminal's network is one of {', '.join(NETWORKS)}, not {network!r}.")
    confined, docker = Bubblewrap(limits), Docker(limits, network)
    if engine != "auto":
        return docker if engine == "docker" else confined
    # The trial takes a while, and there is nothing to choose where no engine is installed.
    if not missing() and (not any(map(shutil.which, ("docker", "podman"))) or usable()):
        return confined
    return confined if docker.missing() else docker


def image_name(spec: Spec) -> str:
    """The name of a task's image: a hash of all that it is built from."""
    facts = [spec.dockerfile, sorted(spec.build_args.items()), spec.context.facts()]
    digest = hashlib.sha256(json.dumps(facts).encode())
    return f"harnesslab-terminal:{digest.hexdigest()[:16]}"


@lru_cache(maxsize=1)
def _modules() -> bytes:
    """One archive, which Python can import from: an engine takes long for many small files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for module in MODULES:
            place = module_place(module)
            for file in (place,) if place.is_file() else sorted(place.rglob("*.py")):
                archive.writestr(file.relative_to(place.parent).as_posix(), file.read_bytes())
    return packed.getvalue()
