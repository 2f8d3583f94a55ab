"""The environment: one episode is one task on one fresh machine; its tests run when the agent says that it is done."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

from harnesslab.errors import (
    ConfigError,
    EnvironmentFault,
    EnvironmentUnavailable,
    NothingPlayable,
    OrderError,
    TasksLeftOut,
)
from harnesslab.rollout.env import JSON, SPLITS, Action, Policy, Split, Task
from harnesslab_envs.picking import picked
from harnesslab_envs.sandbox import Confined, Limits, MachineGone, shown
from harnesslab_envs.terminal.backends import Backend, choose
from harnesslab_envs.terminal.building import take_user
from harnesslab_envs.terminal.grade import grade, runnable
from harnesslab_envs.terminal.rewards import LOST, Verdict, together
from harnesslab_envs.terminal.spec import SOLUTIONS, Healthcheck, Spec, read_folder
from harnesslab_envs.terminal.upload import upload

MAX_STEPS = 20
MAX_COMMAND = 16_000
"""Characters of one command."""
LIMITS = Limits(seconds=30, output=4_000, memory_mb=1_024, disk_mb=256, processes=128)
OWN_TASKS = Path(__file__).parent / "tasks"
GREETING = "You are in {folder} on a Linux machine."
NEXT_PART = "This part of the task is finished. The next part:"
SETUP_SECONDS = 300.0
SOLUTION_SECONDS = 3_600.0
SPARE_S = 120.0
REWARDS = 64
"""Named rewards that a record keeps."""

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

    Private info: ``solved``; ``progress``, the reward between 0 and 1 (without a graded one, the share of tests that
    passed); ``rewards``, the numbers that the tests gave where there are several; ``commands``, counted. The reward of the last step is the tests'.
    """

    def __init__(self, specs: Mapping[str, Spec], backend: Backend, limits: Limits, max_steps: int, solved_at: float):
        self._specs, self._backend, self._limits, self._max_steps = specs, backend, limits, max_steps
        self._solved_at = solved_at
        self._spec: Spec | None = None
        self._machine: Confined | None = None
        self._steps = self._commands = 0
        self._part, self._left = 0, float("inf")
        self._verdicts: list[Verdict] = []
        self._verdict = LOST

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh machine, built for the task; ``seed`` changes nothing."""
        spec = picked(options, "task", self._specs)
        self.close()
        self._spec, self._steps, self._commands = spec, 0, 0
        self._verdicts, self._verdict = [], LOST
        try:
            self._machine = self._backend.machine(spec)
            if spec.healthcheck:
                self._wait(self._machine, spec.healthcheck)
            self._begin(self._machine, 0)
            folder = self._machine.run("pwd").output.strip()
        except MachineGone as error:
            self.close()
            raise EnvironmentFault(f"the task {spec.id} cannot be built: {error}") from error
        except BaseException:
            self.close()
            raise
        return GREETING.format(folder=folder), self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run a command, or end the task and run its tests; see :class:`harnesslab.rollout.env.TextEnv`.

        The tests run at the last step, too, and when the agent's time is used up: a task can be done without saying so.
        """
        if self._machine is None or self._spec is None:
            raise OrderError("No episode is running: call reset() first.")
        self._steps += 1
        what, text = _read_call(action)
        ended = False
        try:
            if what == "bash":
                self._commands += 1
                text = self._run(self._machine, text)
            last = self._steps >= self._max_steps or self._left <= 0
            if what == "finish" or last:
                ended, text = self._finish(self._machine, text, last)
        except MachineGone:
            self.close()
            return "The command ended the machine.", 0.0, True, False, self._info()
        except EnvironmentFault:
            self.close()
            raise
        finished = ended and what == "finish"
        reward = self._verdict.reward if ended else 0.0
        return text, reward, finished, ended and not finished, self._info(invalid=what == "invalid")

    def close(self) -> None:
        """Take the machine down. Safe to call twice."""
        machine, self._machine = self._machine, None
        if machine is not None:
            machine.close()

    def _begin(self, machine: Confined, number: int) -> None:
        """Prepare the machine for a part of the task. Raises EnvironmentFault."""
        assert self._spec is not None
        part = self._spec.parts[number]
        self._part, self._left = number, part.agent_seconds or float("inf")
        if part.user is not None:
            take_user(machine, self._spec, part.user)
        if part.setup.content:
            folder = machine.run("pwd").output.strip()
            upload(machine, part.setup, folder)
            if "setup.sh" in part.setup.content:
                script = shlex.quote(f"{folder}/setup.sh")
                done = machine.run(f"bash {script}; code=$?; rm -f {script}; exit $code", seconds=SETUP_SECONDS)
                if done.code:
                    said = done.output.strip()[-300:]
                    raise EnvironmentFault(f"the task {self._spec.id}: setup.sh of step {number + 1} failed: {said!r}")
        if part.healthcheck:
            self._wait(machine, part.healthcheck)

    def _wait(self, machine: Confined, check: Healthcheck) -> None:
        """Try until the machine is as the task needs it. Raises EnvironmentFault."""
        assert self._spec is not None
        start, failed, done = time.monotonic(), 0, None
        while failed < check.retries:
            done = machine.run(check.command, seconds=check.timeout, keep_state=False)
            if done.code == 0:
                return
            starting = time.monotonic() - start < check.start_period
            failed += 0 if starting else 1
            if failed < check.retries:
                time.sleep(check.start_interval if starting else check.interval)
        said = done.output.strip()[-300:] if done else ""
        raise EnvironmentFault(f"the task {self._spec.id}: its health check fails ({check.command[:100]}): {said!r}")

    def _run(self, machine: Confined, text: str) -> str:
        """The agent's command, or the task's solution, which only the oracle can name."""
        assert self._spec is not None
        part, limits = self._spec.parts[self._part], self._limits
        if text == self._spec.solution_command(self._part):
            folder = SOLUTIONS[self._spec.format]
            upload(machine, part.solution, folder)
            exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in part.solution_environ.items())
            script = f"{folder}/{part.solve}"
            command = f"( export DEBIAN_FRONTEND=noninteractive; {exports}{runnable(machine, script)} )"
            seconds = min(self._left, SOLUTION_SECONDS)
            return shown(machine.run(command, seconds=seconds), seconds)
        start = time.monotonic()
        done = machine.run(text, seconds=min(limits.seconds, self._left))
        self._left -= time.monotonic() - start
        return shown(done, limits.seconds)

    def _finish(self, machine: Confined, text: str, last: bool) -> tuple[bool, str]:
        """Run the tests of this part; whether it was the last, and what the agent is told."""
        spec = self._spec
        assert spec is not None
        part = spec.parts[self._part]
        tools = self._backend.tools(machine, spec)
        verdict = grade(machine, spec, part, tools, self._solved_at)
        self._verdicts.append(verdict)
        parts = verdict.parts or {"reward": verdict.reward}
        stopped = any(parts.get(name, float("-inf")) < least for name, least in part.need.items())
        if last or stopped or self._part + 1 == len(spec.parts):
            self._verdict = together(self._verdicts, len(spec.parts), spec.final, self._solved_at)
            self.close()
            return True, text
        self._begin(machine, self._part + 1)
        return False, f"{NEXT_PART}\n\n{spec.parts[self._part].instruction}"

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        assert self._spec is not None
        verdict = self._verdict
        private: dict[str, Any] = {"solved": verdict.solved, "progress": verdict.progress, "commands": self._commands}
        if len(verdict.parts) > 1:
            private["rewards"] = dict(islice(verdict.parts.items(), REWARDS))
        return {
            # A copy: what a harness does to the schemas must not reach the next episode.
            "public": {"instruction": self._spec.instruction, "tools": deepcopy(list(TOOLS)), "invalid": invalid},
            "private": private,
        }


class TerminalTasks:
    """The environment over a folder of tasks. ``unplayable`` says for each task that is left out why."""

    name = "terminal"

    def __init__(
        self,
        folder: Path,
        backend: Backend,
        limits: Limits,
        max_steps: int,
        environ: Mapping[str, str] | None = None,
        solved_at: float = 1.0,
    ):
        self.max_steps = max_steps
        self._backend, self._limits, self._solved_at = backend, limits, solved_at
        self._splits: dict[Split, list[Task]] = {split: [] for split in SPLITS}
        self._specs: dict[str, Spec] = {}
        digest = hashlib.sha256()
        read = read_folder(folder, environ, backend.check)
        self.unplayable: dict[str, str] = read.unplayable
        for variant, spec in read.tasks:
            self._specs[spec.id] = spec
            split = _split(variant, spec.id)
            self._splits[split].append(Task(spec.id, split, spec.family, options={"task": spec.id}))
            digest.update(spec.digest().encode())
        if not self._specs and self.unplayable:
            name, reason = next(iter(self.unplayable.items()))
            more = f" (and {len(self.unplayable) - 1} more)" if len(self.unplayable) > 1 else ""
            raise NothingPlayable(
                f"None of the tasks in {folder} can be played here. {name}: {reason}{more}", self.unplayable
            )
        if not self._specs:
            raise ConfigError(f"{folder} holds no tasks: no folder in it has a task.yaml or a task.toml.")
        if self.unplayable:
            warnings.warn(TasksLeftOut(str(folder), self.unplayable), stacklevel=3)
        graded = f"@{solved_at:g}" if solved_at != 1.0 else ""
        self.version = f"2+{digest.hexdigest()[:12]}{graded}{backend.tag}"
        # A reset builds; the last step runs the tests. The machines keep these deadlines themselves.
        self.deadline = SPARE_S + max(
            spec.build_seconds
            + sum(part.test_seconds + (part.agent_seconds or SOLUTION_SECONDS) for part in spec.parts)
            for spec in self._specs.values()
        )

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, in the order of their names."""
        if reason := self._backend.missing():
            raise EnvironmentUnavailable(reason)
        return self._splits[split]

    def make(self) -> TerminalEnv:
        """A new instance."""
        return TerminalEnv(self._specs, self._backend, self._limits, self.max_steps, self._solved_at)

    def oracle(self, task: Task) -> Policy:
        """Runs the task's own solution, of each of its parts, and finishes. Raises EnvironmentFault where it has none."""
        spec = self._specs[task.id]
        plan: list[Action] = []
        for number in range(len(spec.parts)):
            if not (command := spec.solution_command(number)):
                raise EnvironmentFault(f"The task {task.id} has no solution.")
            plan += [{"name": "bash", "arguments": {"command": command}}, {"name": "finish", "arguments": {}}]
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
    environ: dict[str, str] | None = None,
    solved_at: float = 1.0,
) -> TerminalTasks:
    """``tasks``: a folder with a folder for each task; by default ``HARNESSLAB_TERMINAL_TASKS``, else the tasks that
    come with it. ``engine``: ``"bubblewrap"``, ``"docker"`` (or Podman), or ``"auto"``, the first of these that works.
    ``network``, with Docker: ``"build"`` where images are built, ``"none"``, or ``"all"``, commands and tests as well.
    ``environ``: values of host variables that task files may ask for, ``${NAME}``; nothing else of the host is handed on.
    ``solved_at``: the reward at which a task counts as solved. The other options limit one command, and the machine."""
    chosen = tasks or os.environ.get("HARNESSLAB_TERMINAL_TASKS") or ""
    folder = Path(chosen).expanduser() if chosen else OWN_TASKS
    limits = Limits(command_seconds, LIMITS.output, memory_mb, disk_mb, LIMITS.processes)
    return TerminalTasks(folder, choose(engine, limits, network), limits, max_steps, environ, solved_at)


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
