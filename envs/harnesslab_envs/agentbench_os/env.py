"""The environment: one episode is one question, or change, on one fresh machine, judged as AgentBench judges."""

from __future__ import annotations

import base64
import shlex
import zlib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable, OrderError
from harnesslab.rollout.env import JSON, SPLITS, Action, Policy, Split, Task
from harnesslab_envs.agentbench_os.left_out import LEFT_OUT, STAY
from harnesslab_envs.agentbench_os.records import Record, Script, find_data, read_records
from harnesslab_envs.mixing import mixed
from harnesslab_envs.picking import picked
from harnesslab_envs.sandbox import Done, Limits, Machine, MachineGone, missing

MAX_STEPS = 8
"""As published."""
MAX_SHOWN = 800
"""Characters of an output that the agent is shown, as in AgentBench."""
MAX_SCRIPT = 16_000
JUDGE_SECONDS = 90.0
"""For one check; some start a Python for each of dozens of cases."""
GATE_FROM_TRAIN = 124
"""Training tasks in ``gate``, beside the 26 of dev."""
LIMITS = Limits(seconds=30, output=64_000, memory_mb=1_024, disk_mb=256, processes=128)
FILES = {
    "/root/.bashrc": b"# Settings of interactive shells.\nHISTCONTROL=ignoredups\n",
    "/root/.profile": b"# Settings of login shells.\nmesg n 2> /dev/null || true\n",
    "/var/log/alternatives.log": b"update-alternatives 2024-01-02 10:00:00: run with --quiet\n" * 12,
    "/var/log/dpkg.log": b"2024-01-02 10:00:01 status installed base-files:amd64\n" * 200
    + b"2024-01-02 10:00:02 status installed libgpg-error0:amd64\n" * 3,
    "/var/log/apt/history.log": b"Start-Date: 2024-01-02  10:00:01\nCommandline: apt-get -y upgrade\n" * 3,
}
"""Published tasks count on files that every image has: some in the home, and logs that hold the word "error"."""
SILENT = "[no output]"
GREETING = "You are root on a Linux system, in the folder /."


def _tool(name: str, description: str, argument: str, about: str, required: bool = True) -> dict[str, JSON]:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": about}},
        "required": [argument] if required else [],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = (
    _tool("bash_action", "Run bash commands and see their output.", "script", "A bash script."),
    _tool("answer_action", "Answer the question. This ends the task.", "answer", "The answer, exactly."),
    _tool("finish_action", "Say that the change is done. This ends the task.", "thought", "Why.", required=False),
)
_ARGUMENTS = {"bash_action": "script", "answer_action": "answer", "finish_action": "thought"}
_KNOWN = "The tools are bash_action with a 'script', answer_action with an 'answer', and finish_action."


class SystemEnv:
    """One instance; ``options["record"]`` of :meth:`reset` names the task. Private info: ``solved``."""

    def __init__(self, records: Mapping[str, Record]):
        self._records = records
        self._record: Record | None = None
        self._machine: Machine | None = None
        self._solved = False

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh machine, set up as published; ``seed`` changes nothing."""
        record = picked(options, "record", self._records)
        self.close()
        self._record, self._solved = record, False
        # Not guarded: published solutions search all of /proc, and a refusal there is in their output, or fails them.
        self._machine = Machine(LIMITS, cwd="/", guarded=False)
        self._machine.put(FILES)
        try:
            # Published set-ups may fail in part (some want the network); AgentBench goes on, too.
            for script in record.init:
                self._machine.run(_as_bash(_drawn_alike(script, record.id), ()), keep_state=False)
            if record.start:
                self._machine.run(record.start)
        except MachineGone as error:
            self.close()
            raise EnvironmentFault(f"the task {record.id} cannot be set up: {error}") from error
        return GREETING, self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run a script, or take the answer; see :class:`harnesslab.rollout.env.TextEnv`."""
        if self._machine is None or self._record is None:
            raise OrderError("No episode is running: call reset() first.")
        what, text = _read_call(action)
        if what == "invalid":
            return text, 0.0, False, False, self._info(invalid=True)
        try:
            if what == "bash_action":
                return _shown(self._machine.run(text)), 0.0, False, False, self._info()
            self._solved = judge(self._machine, self._record, text if what == "answer_action" else "")
        except MachineGone:
            self.close()
            return "The command ended the machine.", 0.0, True, False, self._info()
        self.close()
        return "The task was ended.", float(self._solved), True, False, self._info()

    def close(self) -> None:
        """Take the machine down. Safe to call twice."""
        machine, self._machine = self._machine, None
        if machine is not None:
            machine.close()

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        assert self._record is not None
        return {
            # A copy: what a harness does to the schemas must not reach the next episode.
            "public": {"instruction": self._record.instruction, "tools": deepcopy(list(TOOLS)), "invalid": invalid},
            "private": {"solved": self._solved},
        }


class SystemTasks:
    """The environment over the published tasks."""

    name = "agentbench-os"
    max_steps = MAX_STEPS

    def __init__(self, data: str, all_tasks: bool):
        self._data, self._all = data, all_tasks
        self._loaded: tuple[dict[str, Record], str] | None = None

    @property
    def version(self) -> str:
        """Holds a hash of the data. Raises EnvironmentUnavailable where it is missing."""
        return f"3+{self._content()[1]}"

    def tasks(self, split: Split) -> Sequence[Task]:
        """Test is ``sealed``, train is ``search``, dev with a share of train is ``gate``; without what is left out.

        Raises EnvironmentUnavailable.
        """
        if reason := missing():
            raise EnvironmentUnavailable(reason)
        if split not in SPLITS:
            raise EnvironmentFault(f"{self.name} has no split '{split}'; it has {', '.join(SPLITS)}.")
        records = self._content()[0].values()
        train = mixed([r for r in records if r.source == "train"], _family, _words)
        lent = [r for r in train if r.id not in STAY][:GATE_FROM_TRAIN]
        if split == "search":
            gone = {r.id for r in lent}
            chosen = [r for r in train if r.id not in gone]
        elif split == "gate":
            chosen = mixed([r for r in records if r.source == "dev"] + lent, _family, _words)
        else:
            chosen = mixed([r for r in records if r.source == "test"], _family, _words)
        offered = [record for record in chosen if self._all or record.id not in LEFT_OUT]
        return [Task(r.id, split, r.family, options={"record": r.id, "setup": _setup(r)}) for r in offered]

    def make(self) -> SystemEnv:
        """A new instance."""
        return SystemEnv(self._content()[0])

    def oracle(self, task: Task) -> Policy:
        """Runs the published solution and answers with what it prints, or with the published answer."""
        return _Oracle(self._content()[0][task.id])

    def null(self, task: Task) -> Policy:
        """Finishes at once: the floor that a harness must beat."""
        return lambda _observation, _info: _call("finish_action", thought="")

    def instruction(self, task: Task) -> str:
        """The question, or what is to be changed."""
        return self._content()[0][task.id].instruction

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"

    def _content(self) -> tuple[dict[str, Record], str]:
        if self._loaded is None:
            records, digest = read_records(find_data(self._data))
            self._loaded = {record.id: record for record in records}, digest
        return self._loaded


def environment(data: str = "", all_tasks: bool = False) -> SystemTasks:
    """``data``: AgentBench's folder ``data/os_interaction``; by default ``agentbench-os`` in the data folder.

    ``all_tasks``: also those that cannot be solved here or repeat a task of test (see ``left_out.py``), as in published figures.
    """
    return SystemTasks(data, all_tasks)


def judge(machine: Machine, record: Record, answer: str) -> bool:
    """As published: each check gets the answer and what the ones before it printed, and must exit with 0."""
    if record.match is not None and not record.checks:
        return answer.strip() == record.match.strip()
    given = [answer]
    for check in record.checks:
        script = record.example if check is None else check
        if script is None:
            return False
        done = machine.run(_as_bash(script, given), seconds=JUDGE_SECONDS, keep_state=False)
        if done.code or done.stopped:
            return False
        given.append(done.output)
    return bool(record.checks)


class _Oracle:
    """Plays a record's own solution."""

    def __init__(self, record: Record):
        self._record = record
        self._ran = False

    def __call__(self, observation: str, _info: dict[str, Any]) -> Action:
        record = self._record
        if record.match is not None:
            return _call("answer_action", answer=record.match)
        if record.example is not None and not self._ran:
            self._ran = True
            return _call("bash_action", script=_as_bash(record.example, ()))
        # A check that compares with the solution's output takes that output for an answer; so does a first one that reads it.
        asks = any(check is None or "argv[1]" in check.code for check in record.checks[:1]) or None in record.checks
        answer = "" if observation == SILENT else observation
        return _call("answer_action", answer=answer) if asks else _call("finish_action", thought="")


def _drawn_alike(script: Script, name: str) -> Script:
    """A set-up that draws from bash's RANDOM draws the same in each episode of a task; its subshells do not."""
    if script.language != "bash" or "RANDOM" not in script.code:
        return script
    return Script(f"RANDOM={zlib.crc32(name.encode()) % 32768}\n{script.code}")


def _as_bash(script: Script, arguments: Sequence[str]) -> str:
    """A program with its arguments as one bash script. Encoded, as heredocs and quotes of all kinds occur in them."""
    program = "python3 -c" if script.language == "python" else "bash -c"
    code = base64.b64encode(script.code.encode()).decode("ascii")
    words = ([] if script.language == "python" else ["--"]) if arguments else []
    quoted = " ".join(shlex.quote(word) for word in [*words, *arguments])
    return f'{program} "$(echo {code} | base64 -d)" {quoted}'.rstrip()


def _call(name: str, **arguments: JSON) -> Action:
    return {"name": name, "arguments": arguments}


def _read_call(action: Any) -> tuple[str, str]:
    """(tool, its text), or ("invalid", what is wrong in words for the agent)."""
    if not isinstance(action, dict) or not isinstance(action.get("name"), str):
        return "invalid", f"That is no tool call. {_KNOWN}"
    name, arguments = action["name"], action.get("arguments")
    if name not in _ARGUMENTS:
        return "invalid", f"There is no tool {name[:80]!r}. {_KNOWN}"
    key = _ARGUMENTS[name]
    if name == "finish_action" and not arguments:
        return name, ""
    text = arguments.get(key) if isinstance(arguments, dict) else None
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str) or not isinstance(arguments, dict) or len(arguments) != 1:
        return "invalid", f"{name} takes one argument, {key!r}. {_KNOWN}"
    if len(text) > MAX_SCRIPT:
        return "invalid", f"The argument is longer than {MAX_SCRIPT} characters."
    return name, text


def _shown(done: Done) -> str:
    """An output as AgentBench shows it, which tells no exit status."""
    text = done.output.strip()
    if len(text) > MAX_SHOWN:
        text = text[: MAX_SHOWN - 43] + "\n[truncated because the output is too long]"
    end = f"[stopped: the limit of {done.stopped} was reached]" if done.stopped else ""
    return "\n".join(part for part in (text, end) if part) or SILENT


def _setup(record: Record) -> str:
    """A short hash of what the machine is like: the same question about another machine is another task."""
    scripts = [*(f"{script.language} {script.code}" for script in record.init), record.start]
    return f"{zlib.crc32(chr(0).join(scripts).encode()):08x}"


def _family(record: Record) -> str:
    return record.family


def _words(record: Record) -> str:
    return f"{record.instruction}\n{record.id}"
