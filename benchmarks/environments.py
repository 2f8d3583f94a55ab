"""What the environments are like, measured: bounds, determinism, speed and memory. Prints the table of envs/README.md.

    python benchmarks/environments.py                         all that are usable here, with the options of VARIANTS
    python benchmarks/environments.py tau2:domain=retail      one, with options (several: name:a=1,b=text)
    python benchmarks/environments.py alfworld --limit 20     the first 20 tasks of each split
    python benchmarks/environments.py agentbench-os --splits sealed --out results.jsonl

The oracle and the null agent play every task in two processes with different hash seeds; the two must agree on every
observation. ``--out`` keeps each episode as it ends, one JSON object a line: the same call goes on where it was cut
off, and prints the table of a finished file at once. Below the table: tasks that the oracle did not solve, and tasks that differed.

``--floors`` prints the table "Floors" of envs/README.md instead: what the oracle and agents without a mind solve, each task played once.
The random agent draws an admissible action, else a tool and words it has seen; ``harnesslab.rollout.floors`` describes the others.

Memory is the most that one process of the environment had resident, those of its confined machines included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from processes import descendants, kilobytes, table

from harnesslab.envtools import list_environments
from harnesslab.errors import ConfigError, HarnesslabError
from harnesslab.rollout.bounds import play_policy
from harnesslab.rollout.env import SPLITS, Policy, Task, step_budget, tasks_of
from harnesslab.rollout.floors import floors
from harnesslab.rollout.policies import random_option
from harnesslab.rollout.process.environment import ProcessEnvironment
from harnesslab.rollout.registry import load_environment
from harnesslab.testing.play import null_policy, play
from harnesslab.trainer.panel import choose_panel

VARIANTS = {
    "tau2": ("tau2", "tau2:domain=retail", "tau2:domain=airline"),
    "agentdojo": ("agentdojo", "agentdojo:attack=true"),
}
"""Environments whose options make other tasks of them."""
HASH_SEEDS = ("1", "2")
HEAD = [
    *("environment", "version", "search / gate / sealed", "played", "oracle", "null agent", "same in two processes"),
    *("ms a reset", "ms a step", "MB"),
]


FLOORS = ["environment", "played", "oracle", "null agent", "random", "first option", "constant", "the constant answer"]


@dataclass(frozen=True, slots=True)
class Panel:
    """What is played: an environment with its options, the splits, and of each the first ``limit`` tasks (0: all)."""

    name: str
    limit: int = 0
    splits: tuple[str, ...] = SPLITS

    def load(self) -> Any:
        """The environment; a process of its own gets our hash seed instead of the fixed one."""
        name, options = options_of(self.name)
        environment: Any = load_environment(name, **options)
        if isinstance(environment, ProcessEnvironment):
            seeded = {**environment.launch.environ, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
            environment = ProcessEnvironment(replace(environment.launch, environ=seeded), environment.starter().parent)
        return environment

    def tasks(self, environment: Any) -> list[Task]:
        """The tasks to play."""
        return [task for split in self.splits for task in list(environment.tasks(split))[: self.limit or None]]

    def words(self) -> str:
        """Which part of the tasks this is."""
        which = ("each" if self.limit else "all") if self.splits == SPLITS else ", ".join(self.splits)
        return f"first {self.limit} of {which}" if self.limit else which


@dataclass(frozen=True, slots=True)
class Record:
    """One episode. Times in milliseconds; ``task`` holds its split, ``agent`` is ``oracle`` or ``null``."""

    panel: str
    version: str
    hash_seed: str
    task: str
    agent: str
    solved: bool
    digest: str
    broken: str
    reset_ms: float
    steps_ms: tuple[float, ...]
    megabytes: float

    def key(self) -> tuple[str, ...]:
        """What it is a record of."""
        return self.panel, self.version, self.hash_seed, self.task, self.agent


def options_of(name: str) -> tuple[str, dict[str, Any]]:
    """``"tau2:domain=retail"`` is ``("tau2", {"domain": "retail"})``; values are JSON, or text where they are none.

    Raises ConfigError where an option has no value.
    """
    base, _, rest = name.rpartition(":")
    if not base or "=" not in rest:
        return name, {}  # a bare name, or an import path like package.module:callable
    options = {}
    for pair in rest.split(","):
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"'{pair}' in '{name}' is no option: write name:option=value,option=value.")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return base, options


def read(file: Path) -> dict[tuple[str, ...], Record]:
    """The episodes in a file. A last line that was cut off does not count."""
    records = {}
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        try:
            values = json.loads(line)
        except ValueError:
            continue
        record = Record(**{**values, "steps_ms": tuple(values["steps_ms"])})
        records[record.key()] = record
    return records


def fill(panel: Panel, file: Path) -> None:
    """Play what is not in the file yet, in this process's hash seed, and add it. It stops when its parent is gone."""
    environment, done, parent = panel.load(), read(file), os.getppid()
    with file.open("a", encoding="utf-8") as out:
        if file.stat().st_size and not file.read_bytes().endswith(b"\n"):
            out.write("\n")
        for task in panel.tasks(environment):
            for agent in ("oracle", "null"):
                blank = Record(
                    *(panel.name, environment.version, os.environ["PYTHONHASHSEED"], f"{task.split} {task.id}", agent),
                    *(False, "", "", 0.0, (), 0.0),
                )  # fmt: skip
                if os.getppid() != parent:
                    return
                if blank.key() not in done:
                    policy = environment.oracle(task) if agent == "oracle" else null_policy(environment, task)
                    out.write(json.dumps(asdict(played(environment, task, policy, blank))) + "\n")
                    out.flush()


def played(environment: Any, task: Task, policy: Policy, blank: Record) -> Record:
    """One episode in a fresh instance."""
    env = environment.make()
    try:
        one = play(env, task, policy, environment.max_steps)
        megabytes = peak()
    finally:
        env.close()
    times = [1e3 * moment.seconds for moment in one.moments] or [0.0]
    return replace(
        blank, solved=one.solved, digest=one.digest(), broken=one.broken, reset_ms=times[0], steps_ms=tuple(times[1:]),
        megabytes=megabytes,
    )  # fmt: skip


def peak() -> float:
    """The most memory that a process below this one had, in megabytes; of this one where there are none."""
    children = [kilobytes(f"/proc/{pid}/status", "VmHWM:") for pid in descendants(os.getpid())]
    return max(children, default=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024


def measure(panel: Panel, file: Path) -> tuple[list[str], list[str]]:
    """(the cells of a row, remarks on single tasks)"""
    for seed in HASH_SEEDS:
        error = in_process(panel, file, seed)
        if error:
            return [f"`{panel.name}`", error, *[""] * (len(HEAD) - 2)], []
    environment = panel.load()
    names = [f"{task.split} {task.id}" for task in panel.tasks(environment)]
    counts = " / ".join(str(len(environment.tasks(split))) for split in SPLITS)
    return summary(panel, environment.version, counts, names, read(file))


def summary(
    panel: Panel, version: str, counts: str, names: list[str], records: dict[tuple[str, ...], Record]
) -> tuple[list[str], list[str]]:
    """:func:`measure` of what is in the file. What the first process solved counts; times are medians of both."""

    def of(seed: str, name: str, agent: str) -> Record:
        return records[panel.name, version, seed, name, agent]

    solved = {agent: [name for name in names if of(HASH_SEEDS[0], name, agent).solved] for agent in ("oracle", "null")}
    gold = [of(seed, name, "oracle") for seed in HASH_SEEDS for name in names]
    both = [of(seed, name, agent) for seed in HASH_SEEDS for name in names for agent in ("oracle", "null")]
    differ = [
        name
        for name in names
        if any(of("1", name, agent).digest != of("2", name, agent).digest for agent in ("oracle", "null"))
    ]
    row = [
        *(f"`{panel.name}`", version, counts, panel.words()),
        *(f"{len(solved[agent])}/{len(names)}" for agent in ("oracle", "null")),
        f"no: {len(differ)} of {len(names)} tasks differ" if differ else "yes",
        f"{statistics.median(one.reset_ms for one in gold):.2f}",
        f"{statistics.median(ms for one in gold for ms in one.steps_ms or (0.0,)):.2f}",
        f"{max(one.megabytes for one in both):.0f}",
    ]
    remarks = []
    for name in names:
        unsolved = [seed for seed in HASH_SEEDS if not of(seed, name, "oracle").solved]
        if unsolved:
            which = "" if unsolved == [*HASH_SEEDS] else f" in process {unsolved[0]} only"
            why = of(unsolved[0], name, "oracle").broken.partition("\n")[0]
            remarks.append(f"not solved{which}: {name} {why}".rstrip())
    return row, [*remarks, *(f"differs: {name}" for name in differ)]


def floors_row(panel: Panel) -> list[str]:
    """The cells of a row of the table of floors."""
    environment = panel.load()
    tasks, budget = panel.tasks(environment), step_budget(environment)
    search = choose_panel(tasks_of(environment, "search"), "search").tasks
    found = floors(environment, tasks, budget, search)
    drawn = sum(play_policy(environment, task, random_option(task.id), budget, guarded=False).solved for task in tasks)
    solved = (found.oracle, found.null, drawn, found.first, found.constant)
    cells = ["n/a" if count is None else f"{count}/{len(tasks)}" for count in solved]
    return [f"`{panel.name}`", panel.words(), *cells, f"`{found.answer}`" if found.answer else "n/a"]


def in_process(panel: Panel, file: Path, hash_seed: str) -> str:
    """:func:`fill` in a Python of its own; its last words where it fails."""
    command = [sys.executable, __file__, panel.name, "--fill", "--out", str(file), "--limit", str(panel.limit)]
    variables = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([*command, "--splits", *panel.splits], env=variables, stderr=subprocess.PIPE, text=True)
    return (done.stderr.strip().splitlines() or ["no message"])[-1][:200] if done.returncode else ""


def usable() -> Iterator[str]:
    """The environments that can be played here; of the others, why not."""
    for status in list_environments():
        if status.runs:
            yield from VARIANTS.get(status.name, (status.name,))
        else:
            print(f"{status.name}: {status.note}", file=sys.stderr)


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=int, default=0, help="tasks of each split (0: all)")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--out", type=Path, help="keep the episodes in this file, and go on from it")
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--floors", action="store_true", help="print what agents without a mind solve instead")
    chosen = parser.parse_args()
    panels = [Panel(name, chosen.limit, tuple(chosen.splits)) for name in chosen.names or usable()]
    if chosen.fill:
        fill(panels[0], chosen.out)
        return
    if chosen.floors:
        table(FLOORS, [floors_row(panel) for panel in panels])
        return
    with tempfile.TemporaryDirectory() as scratch:
        rows, remarks = [], []
        for panel in panels:
            row, notes = measure(panel, chosen.out or Path(scratch) / "episodes.jsonl")
            print(" | ".join(row), file=sys.stderr, flush=True)
            rows.append(row)
            remarks += [f"{panel.name}: {note}" for note in notes]
    table(HEAD, rows)
    print("\n".join(["", *remarks]) if remarks else "", end="\n" if remarks else "")


if __name__ == "__main__":
    try:
        main()
    except HarnesslabError as error:
        raise SystemExit(f"error: {error}") from None
