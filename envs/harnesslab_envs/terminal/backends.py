"""What a task's machine is made with: bubblewrap and this system's programs, or a container engine and an image."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
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
from harnesslab_envs.terminal.build import build
from harnesslab_envs.terminal.spec import PYTEST, Spec

ENGINES = ("auto", "bubblewrap", "docker")
NETWORKS = ("build", "none", "all")
MODULES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
"""What Python in a machine has beyond the standard library."""
BUILD_SECONDS = 1_800.0
"""For an image; published ones are pulled and install packages."""
OURS = "/opt/harnesslab"
"""Where a container gets :data:`MODULES` when the agent has finished."""
_LAUNCH, _ARCHIVE = f"{OURS}/launch.py", f"{OURS}/modules.zip"
# By path, so that no module of the agent's folder comes first; -P would do that, and older Pythons lack it.
_LAUNCHER = b"import sys\nsys.path[0] += '/modules.zip'\nimport pytest\nsys.exit(pytest.console_main())\n"
_PROBE = (
    "import sys, importlib.util as util; "
    "print('ours' if sys.version_info >= (3, 11) else 'own' if util.find_spec('pytest') else '')"
)


class Backend(Protocol):
    """Makes machines. ``tag`` is what it adds to the environment's version; ``follow`` says that it reads Dockerfiles
    line by line."""

    tag: str
    follow: bool

    def missing(self) -> str:
        """Why it cannot be used here, and what to do; empty where it can."""
        ...

    def machine(self, spec: Spec) -> Confined:
        """A fresh machine as the task's Dockerfile says. Raises EnvironmentFault where that cannot be."""
        ...

    def pytest(self, machine: Confined, spec: Spec) -> list[str]:
        """The words that start pytest in the machine once the agent has finished; none where the task's own script is to
        run in its place."""
        ...


class Bubblewrap:
    """This system's programs under a copy-on-write layer."""

    tag, follow = "", True

    def __init__(self, limits: Limits):
        self._limits = limits

    def missing(self) -> str:
        """See :class:`Backend`."""
        reason = missing()
        return f'{reason} Or start Docker, for load_environment("terminal", engine="docker").' if reason else ""

    def machine(self, spec: Spec) -> Confined:
        """See :class:`Backend`."""
        machine = Machine(self._limits, modules=MODULES)
        try:
            build(machine, spec)
        except BaseException:
            machine.close()
            raise
        return machine

    def pytest(self, machine: Confined, spec: Spec) -> list[str]:
        """See :class:`Backend`."""
        return [python_inside(), "-P", "-m", "pytest"] if PYTEST in spec.tests else []


class Docker:
    """Images that an engine builds from the tasks' Dockerfiles, once for each content. ``network`` is one of
    :data:`NETWORKS`: who has it."""

    tag, follow = ".docker", False

    def __init__(self, limits: Limits, network: str):
        self._limits, self._network = limits, network
        self._pytest: dict[str, str] = {}

    def missing(self) -> str:
        """See :class:`Backend`."""
        try:
            find_engine()
        except EnvironmentUnavailable as error:
            return str(error)
        return ""

    def machine(self, spec: Spec) -> Confined:
        """See :class:`Backend`."""
        engine = find_engine()
        image = spec.image
        if spec.dockerfile:
            context = {name: (data, 0o755 if name in spec.executable else 0o644) for name, data in spec.context.items()}
            image = image_name(spec)
            try:
                engine.build(image, context, network=self._network != "none", seconds=BUILD_SECONDS)
            except EngineError as error:
                raise EnvironmentFault(f"the image of the task {spec.id} cannot be built: {error}") from error
        elif not image:
            raise EnvironmentFault(f"the task {spec.id} has neither a Dockerfile nor a docker_image")
        machine = Container(engine, image, self._limits, network=self._network == "all")
        try:
            if spec.id not in self._pytest:
                done = machine.run(f'python3 -c "{_PROBE}"', keep_state=False)
                self._pytest[spec.id] = done.output.strip() if not done.code else ""
            if not self._pytest[spec.id] and not spec.script:
                raise EnvironmentFault(
                    f"the image of the task {spec.id} has neither Python 3.11 nor pytest, which run its tests"
                )
        except BaseException:
            machine.close()
            raise
        return machine

    def pytest(self, machine: Confined, spec: Spec) -> list[str]:
        """See :class:`Backend`. Where tests have a network, the published script runs: it may install what it needs."""
        kind = self._pytest[spec.id]
        if PYTEST not in spec.tests or not kind or (self._network == "all" and spec.script):
            return []
        machine.run(f"rm -rf {OURS}", keep_state=False)
        machine.put({_LAUNCH: _LAUNCHER} | ({_ARCHIVE: _modules()} if kind == "ours" else {}))
        return ["python3", _LAUNCH]


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
    digest = hashlib.sha256(spec.dockerfile.encode())
    for name, content in sorted(spec.context.items()):
        mode = "x" if name in spec.executable else "-"
        digest.update(f"\0{mode}{name}\0{len(content)}\0".encode() + content)
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
