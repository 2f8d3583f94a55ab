"""What the environments are like, measured: bounds, determinism, speed and memory. Prints the table of envs/README.md.

    python benchmarks/environments.py [NAME ...] [--limit 20]     one row an environment, the usable ones by default
    python benchmarks/environments.py --overhead                  what a process of its own costs a step
    python benchmarks/environments.py --crowd babyai [--size 20]  many processes of one environment at once

Each environment is measured in a process of its own, twice, with different hash seeds; the two must agree on every
observation. Memory is the most that one process of the environment had resident; of a crowd, its proportional share.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from harnesslab.envtools import list_environments
from harnesslab.errors import HarnesslabError
from harnesslab.rollout.env import SPLITS, Policy, Task
from harnesslab.rollout.guard import GuardedEnv
from harnesslab.rollout.process.environment import ProcessEnvironment
from harnesslab.rollout.process.folder import find_folder
from harnesslab.rollout.registry import load_environment
from harnesslab.testing.play import Played, null_policy, play

HERE = Path(__file__).parent
STEPS = 3_000
TIMEOUT_S = 7200


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def measured(name: str, limit: int | None) -> dict[str, Any]:
    """Play the oracle and the null agent on the first ``limit`` tasks of each split."""
    environment = opened(name)
    tasks = [task for split in SPLITS for task in list(environment.tasks(split))[:limit]]
    gold = [played(environment, task, environment.oracle(task)) for task in tasks]
    null = [played(environment, task, null_policy(environment, task)) for task in tasks]
    resets = [one.moments[0].seconds for one in gold if one.moments]
    steps = [moment.seconds for one in gold for moment in one.moments[1:]]
    return {
        "version": environment.version,
        "all": " / ".join(str(len(environment.tasks(split))) for split in SPLITS),
        "played": len(tasks),
        "gold": sum(one.solved for one in gold),
        "null": sum(one.solved for one in null),
        "digest": hashlib.sha256("".join(one.digest() for one in [*gold, *null]).encode()).hexdigest(),
        "reset": 1e3 * statistics.median(resets or [0]),
        "step": 1e3 * statistics.median(steps or [0]),
        "megabytes": peak(environment),
    }


def opened(name: str) -> Any:
    """The environment; a process of its own gets our hash seed instead of the fixed one."""
    environment: Any = load_environment(name)
    if isinstance(environment, ProcessEnvironment):
        seeded = {**environment.launch.environ, "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
        environment = ProcessEnvironment(replace(environment.launch, environ=seeded), environment.starter().parent)
    return environment


def played(environment: Any, task: Task, policy: Policy) -> Played:
    """One episode in a fresh instance."""
    env = environment.make()
    try:
        return play(env, task, policy, environment.max_steps)
    finally:
        env.close()


def peak(environment: Any) -> float:
    """The most memory that the environment's process had, in megabytes."""
    if not isinstance(environment, ProcessEnvironment):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    env = environment.make()
    task = environment.tasks("search")[0]
    env.reset(seed=task.seed, options=task.options)
    pids = descendants(os.getpid())
    env.close()
    return max(kilobytes(f"/proc/{pid}/status", "VmHWM:") for pid in pids) / 1024


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and theirs."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *descendants(child)]
    return found


def kilobytes(file: str, field: str) -> int:
    """A field of a file in /proc, in kB; 0 where the process is gone."""
    try:
        return next(int(line.split()[1]) for line in Path(file).read_text().splitlines() if line.startswith(field))
    except (OSError, StopIteration):
        return 0


def bounds(names: list[str], limit: int | None) -> None:
    """The table of envs/README.md."""
    rows = []
    for status in list_environments():
        if names and status.name not in names:
            continue
        if not status.runs:
            print(f"{status.name}: {status.note}", file=sys.stderr)
            continue
        first, second = (in_process(status.name, limit, seed) for seed in ("1", "2"))
        if "error" in first or "error" in second:
            rows.append([f"`{status.name}`", first.get("error") or second["error"], *[""] * 7])
            continue
        rows.append(
            [
                f"`{status.name}`",
                first["version"],
                first["all"],
                f"{first['gold']}/{first['played']}",
                f"{first['null']}/{first['played']}",
                "yes" if first["digest"] == second["digest"] else "NO",
                f"{first['reset']:.2f}",
                f"{first['step']:.2f}",
                f"{first['megabytes']:.0f}",
            ]
        )
    head = ["environment", "version", "search / gate / sealed", "oracle", "null agent", "same in two processes"]
    table([*head, "ms a reset", "ms a step", "MB"], rows)


def in_process(name: str, limit: int | None, hash_seed: str) -> dict[str, Any]:
    """:func:`measured` in a Python of its own."""
    command = [sys.executable, __file__, name, "--one", "--limit", str(limit or 0)]
    variables = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1][:200]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


async def overhead() -> None:
    """Steps of the same environment in this process and in its own, in turn, as the trusted loop takes them."""
    rows = []
    for size in (0.2, 4.0, 20.0):
        worlds: list[Any] = [load_environment(str(HERE / "echo"), process=own, kilobytes=size) for own in (False, True)]
        envs = [world.make() for world in worlds]
        guarded = [GuardedEnv(env) for env in envs]
        times: list[list[float]] = [[], []]
        for env in guarded:
            await env.reset(seed=0, options={})
        for _ in range(STEPS):
            for env, taken in zip(guarded, times, strict=True):
                start = time.perf_counter()
                await env.step("echo")
                taken.append(1e3 * (time.perf_counter() - start))
        differences = sorted(own - here for here, own in zip(*times, strict=True))
        worlds[1].close()
        values = (statistics.median(differences), differences[int(0.95 * STEPS)])
        rows.append([f"{size:g} kB", str(STEPS), *(f"{value:.3f}" for value in values)])
    table(["a step returns", "steps", "overhead, median ms", "95 %"], rows)


def crowd(name: str, size: int) -> None:
    """``size`` instances at once, each playing its oracle's task."""
    environment: Any = load_environment(name, process=True)
    tasks = [task for split in SPLITS for task in environment.tasks(split)]
    envs = [environment.make() for _ in range(size)]
    start = time.perf_counter()
    threads = [
        threading.Thread(
            target=lambda env=env, task=task: play(env, task, environment.oracle(task), environment.max_steps)
        )
        for env, task in zip(envs, tasks, strict=False)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pids = descendants(os.getpid())
    share = sum(kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in pids) / 1024
    whole = sum(kilobytes(f"/proc/{pid}/status", "VmHWM:") for pid in pids) / 1024
    for env in envs:
        env.close()
    environment.close()
    head = ["environment", "instances", "processes", "MB together, shared pages once", "MB, the peaks added", "s"]
    cells = [f"`{name}`", size, len(pids), f"{share:.0f}", f"{whole:.0f}", f"{time.perf_counter() - start:.1f}"]
    table(head, [[str(cell) for cell in cells]])


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=int, default=0, help="tasks of each split (0: all)")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--crowd")
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measured(chosen.names[0], chosen.limit or None)))
    elif chosen.overhead:
        asyncio.run(overhead())
    elif chosen.crowd:
        if find_folder(chosen.crowd) is None:
            parser.error(f"'{chosen.crowd}' has no folder, so no processes")
        crowd(chosen.crowd, chosen.size)
    else:
        bounds(chosen.names, chosen.limit or None)


if __name__ == "__main__":
    try:
        main()
    except HarnesslabError as error:
        raise SystemExit(f"error: {error}") from None
