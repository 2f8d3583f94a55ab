"""What processes of their own cost.

python benchmarks/processes.py                      a step of one, beside the same environment in this process
python benchmarks/processes.py babyai [--size 20]   many processes of one environment at once
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from harnesslab.errors import HarnesslabError
from harnesslab.rollout.env import SPLITS
from harnesslab.rollout.guard import GuardedEnv
from harnesslab.rollout.process.folder import find_folder
from harnesslab.rollout.registry import load_environment
from harnesslab.testing.play import play

HERE = Path(__file__).parent
STEPS = 3_000


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and theirs; those that end meanwhile are left out."""
    found: list[int] = []
    try:
        children = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return found
    for child in map(int, " ".join(children).split()):
        found += [child, *descendants(child)]
    return found


def kilobytes(file: str, field: str) -> int:
    """A field of a file in /proc, in kB; 0 where the process is gone."""
    try:
        return next(int(line.split()[1]) for line in Path(file).read_text().splitlines() if line.startswith(field))
    except (OSError, StopIteration):
        return 0


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
    parser.add_argument("name", nargs="?", help="many processes of this one; without it, the cost of a step")
    parser.add_argument("--size", type=int, default=20)
    chosen = parser.parse_args()
    if chosen.name is None:
        asyncio.run(overhead())
    elif find_folder(chosen.name) is None:
        parser.error(f"'{chosen.name}' has no folder, so no processes")
    else:
        crowd(chosen.name, chosen.size)


if __name__ == "__main__":
    try:
        main()
    except HarnesslabError as error:
        raise SystemExit(f"error: {error}") from None
