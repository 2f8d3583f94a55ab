"""The environment: one episode is one task on one fresh machine; its tests run when the agent says that it is done."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable, OrderError
from harnesslab.rollout.env import JSON, SPLITS, Action, Policy, Split, Task
from harnesslab_envs.picking import picked
from harnesslab_envs.sandbox import Confined, Limits, MachineGone, shown
from harnesslab_envs.terminal.backends import Backend, choose
from harnesslab_envs.terminal.build import grade
from harnesslab_envs.terminal.spec import Spec, read_folder

MAX_STEPS = 20
MAX_COMMAND = 16_000
"""Characters of one command."""
LIMITS = Limits(seconds=30, output=4_000, memory_mb=1_024, disk_mb=256, processes=128)
OWN_TASKS = Path(__file__).parent / "tasks"
GREETING = "You are in {folder} on a Linux machine."

TOOLS: tuple[dict[str, JSON], ...] = (
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Run bash commands and see their output. The folder and exported variables are kept.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "A bash script."}},
                "required": ["command"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "finish",
            "description": "Say that the task is done. This ends it.",
            "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        },
    },
)
_KNOWN = "The tools are bash with a 'command', and finish without arguments."


class TerminalEnv:
    """One instance; ``options["task"]`` of :meth:`reset` names the task.

    Private info: ``solved``; ``progress``, the share of the tests that passed once they ran; ``commands``, counted.
    """

    def __init__(self, specs: Mapping[str, Spec], backend: Backend, limits: Limits, max_steps: int):
        self._specs, self._backend, self._limits, self._max_steps = specs, backend, limits, max_steps
        self._spec: Spec | None = None
        self._machine: Confined | None = None
        self._steps = self._commands = 0
        self._solved, self._progress = False, 0.0

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh machine, built for the task; ``seed`` changes nothing."""
        spec = picked(options, "task", self._specs)
        self.close()
        self._spec, self._steps, self._commands = spec, 0, 0
        self._solved, self._progress = False, 0.0
        try:
            self._machine = self._backend.machine(spec)
            folder = self._machine.run("pwd").output.strip()
        except MachineGone as error:
            self.close()
            raise EnvironmentFault(f"the task {spec.id} cannot be built: {error}") from error
        return GREETING.format(folder=folder), self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run a command, or end the task and run its tests; see :class:`harnesslab.rollout.env.TextEnv`.

        The tests run at the last step, too: a task can be done without saying so.
        """
        if self._machine is None or self._spec is None:
            raise OrderError("No episode is running: call reset() first.")
        self._steps += 1
        last = self._steps >= self._max_steps
        what, text = _read_call(action)
        try:
            if what == "bash":
                self._commands += 1
                done = self._machine.run(text)
                text = shown(done, self._limits.seconds)
            if what == "finish" or last:
                self._machine.sweep()
                pytest = self._backend.pytest(self._machine, self._spec)
                self._solved, self._progress = grade(self._machine, self._spec, pytest)
                self.close()
        except MachineGone:
            self.close()
            return "The command ended the machine.", 0.0, True, False, self._info()
        ended = what == "finish"
        return text, float(self._solved), ended, last and not ended, self._info(invalid=what == "invalid")

    def close(self) -> None:
        """Take the machine down. Safe to call twice."""
        machine, self._machine = self._machine, None
        if machine is not None:
            machine.close()

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        assert self._spec is not None
        return {
            # A copy: what a harness does to the schemas must not reach the next episode.
            "public": {"instruction": self._spec.instruction, "tools": deepcopy(list(TOOLS)), "invalid": invalid},
            "private": {"solved": self._solved, "progress": self._progress, "commands": self._commands},
        }


class TerminalTasks:
    """The environment over a folder of tasks."""

    name = "terminal"

    def __init__(self, folder: Path, backend: Backend, limits: Limits, max_steps: int):
        self.max_steps = max_steps
        self._backend, self._limits = backend, limits
        self._splits: dict[Split, list[Task]] = {split: [] for split in SPLITS}
        self._specs: dict[str, Spec] = {}
        digest = hashlib.sha256()
        for variant, spec in read_folder(folder, follow=backend.follow):
            self._specs[spec.id] = spec
            split = _split(variant, spec.id)
            self._splits[split].append(Task(spec.id, split, spec.family, options={"task": spec.id}))
            digest.update(repr(spec).encode())
            if not backend.follow:
                digest.update(repr((spec.dockerfile, spec.image, sorted(spec.executable))).encode())
        if not self._specs:
            raise ConfigError(f"{folder} holds no tasks: no folder in it has a task.yaml or a task.toml.")
        self.version = f"1+{digest.hexdigest()[:12]}{backend.tag}"

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, in the order of their names."""
        if reason := self._backend.missing():
            raise EnvironmentUnavailable(reason)
        return self._splits[split]

    def make(self) -> TerminalEnv:
        """A new instance."""
        return TerminalEnv(self._specs, self._backend, self._limits, self.max_steps)

    def oracle(self, task: Task) -> Policy:
        """Runs the task's own solution and finishes."""
        solution = self._specs[task.id].solution
        if not solution:
            raise EnvironmentFault(f"The task {task.id} has no solution.")
        plan: list[Action] = [{"name": "bash", "arguments": {"command": solution}}]
        actions = iter(plan)
        return lambda _observation, _info: next(actions, {"name": "finish", "arguments": {}})

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"


def environment(
    tasks: str = "",
    *,
    max_steps: int = MAX_STEPS,
    command_seconds: float = 30,
    memory_mb: int = 1_024,
    disk_mb: int = 256,
    engine: str = "auto",
    network: str = "build",
) -> TerminalTasks:
    """``tasks``: a folder with a folder for each task; by default ``HARNESSLAB_TERMINAL_TASKS``, else the tasks that
    come with it. ``engine``: ``"bubblewrap"``, ``"docker"`` (or Podman), or ``"auto"``, the first of these that works.
    ``network``, with Docker: ``"build"`` where images are built, ``"none"``, or ``"all"``, commands and tests as well.
    The other options limit one command, and the machine."""
    chosen = tasks or os.environ.get("HARNESSLAB_TERMINAL_TASKS") or ""
    folder = Path(chosen).expanduser() if chosen else OWN_TASKS
    limits = Limits(command_seconds, LIMITS.output, memory_mb, disk_mb, LIMITS.processes)
    return TerminalTasks(folder, choose(engine, limits, network), limits, max_steps)


def _read_call(action: Any) -> tuple[str, str]:
    """("bash", the command), ("finish", what is told), or ("invalid", what is wrong in words for the agent)."""
    if not isinstance(action, dict) or not isinstance(action.get("name"), str):
        return "invalid", f"That is no tool call. {_KNOWN}"
    name, arguments = action["name"], action.get("arguments")
    if name == "finish" and not arguments:
        return "finish", "The task was ended."
    if name not in ("bash", "finish"):
        return "invalid", f"There is no tool {name[:80]!r}. {_KNOWN}"
    command = arguments.get("command") if isinstance(arguments, dict) else None
    if name == "finish" or not isinstance(arguments, dict) or not isinstance(command, str) or len(arguments) != 1:
        return "invalid", f"{name} was called with the wrong arguments. {_KNOWN}"
    if len(command) > MAX_COMMAND:
        return "invalid", f"The command is longer than {MAX_COMMAND} characters."
    return "bash", command


def _split(variant: str, task_id: str) -> Split:
    """A variant that begins with a split's name belongs to it; other tasks are shared out by a hash: 40, 30, 30 %."""
    for split in SPLITS:
        if variant.startswith(split):
            return split
    place = int(hashlib.sha256(task_id.encode()).hexdigest(), 16) % 10
    return "search" if place < 4 else "gate" if place < 7 else "sealed"
