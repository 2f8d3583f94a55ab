"""How fast the store is with many candidates and many steps. Prints one table.

    python benchmarks/store.py [--many 5000] [--huge 50000] [--episodes 5000]

The lab is filled by `git fast-import` (proposing 50,000 one by one would measure nothing else);
every measured call goes through the public interface. Times in milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo, RunStore
from harnesslab.store.refs import new_id

REPEATS = 30
STEPS = 20
Row = tuple[str, float, float, str]


def fill(repo: LabRepo, count: int) -> None:
    """Give the lab `count` candidates, nine of ten rejected with a verdict, packed as `git gc` leaves them."""
    baseline = repo.baseline()
    who = "harnesslab <harnesslab@localhost>"
    now = int(time.time())
    stream: list[str] = []
    notes: list[str] = []

    def text(content: str) -> str:
        return f"data {len(content.encode())}\n{content}\n"

    for number in range(count):
        candidate, state = new_id(), "candidates" if number % 10 == 0 else "rejected"
        meta = f'Harnesslab-Meta: {{"estimator":"MiningEstimator","layer":"{("skill", "action")[number % 2]}"}}'
        stream.append(
            f"commit refs/harnesslab/{state}/{candidate}\nmark :{number + 1}\ncommitter {who} {now - count + number} +0000\n"
            + text(f"Idea {number}\n\n{meta}")
            + f"from {baseline}\nM 100644 inline skill/idea.yaml\n"
            + text(f"idea: {number}\n")
        )
        if state == "rejected":
            verdict = f'{{"state":"rejected","delta":{number % 7 - 3},"reason":"loses task {number % 50}","decided_by":"StrictPareto"}}'
            notes.append(f"N inline :{number + 1}\n{text(verdict)}")
    stream.append(f"commit refs/notes/harnesslab\ncommitter {who} {now} +0000\n{text('verdicts')}{''.join(notes)}\n")
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repo.path, input="".join(stream).encode(), check=True)
    subprocess.run(["git", "pack-refs", "--all"], cwd=repo.path, check=True)


def measure(name: str, call: Callable[[], object], target: str, repeats: int = REPEATS) -> Row:
    """Median and 95th percentile of a call, in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return name, statistics.median(times), sorted(times)[max(0, int(0.95 * len(times)) - 1)], target


def refs(folder: Path, count: int, target: str) -> list[Row]:
    """The git half: a lab of `count` candidates."""
    repo = LabRepo.create(folder / f"lab {count}", {"harness.toml": "name = 'bench'\n"})
    fill(repo, count)
    rows = [measure(f"{count} candidates: first listing (index is built)", repo.candidates, "", 1)]
    fresh = LabRepo.open(repo.path)
    rows.append(measure(f"{count}: page of 50, by time", fresh.candidates, target))
    rows.append(
        measure(
            f"{count}: page of 50, by delta, last page",
            lambda: fresh.candidates(order="delta", offset=count - 50),
            target,
        )
    )
    rows.append(
        measure(f"{count}: page of 50, text filter", lambda: fresh.candidates(text="idea 77", state="rejected"), target)
    )
    waiting = [row.id for row in fresh.candidates(state="pending", limit=REPEATS).rows]
    rows.append(
        measure(
            f"{count}: reject", lambda: Ledger(fresh).reject(waiting.pop(), {"reason": "slower", "delta": -1}), target
        )
    )
    rows.append(measure(f"{count}: listing after a decision", lambda: _decide_and_list(fresh), ""))
    offered: list[str] = []
    rows.append(
        measure(f"{count}: propose", lambda: offered.append(fresh.propose({"a.yaml": f"{time.time()}"}, "a").id), "")
    )

    times = []
    for number in range(REPEATS):
        candidate = fresh.propose({"b.yaml": f"b: {number}\n"}, f"b {number}").id
        start = time.perf_counter()
        Ledger(fresh).promote(candidate, {"reason": "better", "delta": 1})
        times.append((time.perf_counter() - start) * 1e3)
    rows.append((f"{count}: promote", statistics.median(times), sorted(times)[int(0.95 * len(times)) - 1], target))
    return rows


def _decide_and_list(repo: LabRepo) -> None:
    candidate = repo.candidates(state="pending", limit=1).rows[0].id
    Ledger(repo).reject(candidate, {"reason": "x"})
    repo.candidates()


def records(folder: Path, episodes: int) -> list[Row]:
    """The SQLite half: a run of `episodes` episodes of 20 steps."""
    store = RunStore.open(folder)
    run = store.begin_run("0" * 40, {"env": "bench"}, split="search")
    prompt = "You are in the kitchen. You see a counter 1, a fridge 1 and a table 1. " * 8
    step = {"observation": prompt[:200], "request": {"messages": [{"role": "user", "content": prompt}]}, "fired": ["a"]}
    trace = [{**step, "index": number, "reply": f"go to fridge {number}"} for number in range(STEPS)]
    ids: list[int | None] = []
    add = measure(
        f"add an episode of {STEPS} steps",
        lambda: ids.append(
            store.add_episode(run, {"task_id": f"t{len(ids)}", "steps": STEPS, "fired": {"a": 3}}, trace)
        ),
        "0.5 amortised",
        episodes,
    )
    frame = measure(
        f"{episodes * STEPS} steps: DataFrame of episodes", lambda: pd.DataFrame(store.episode_columns(run)), "1000", 5
    )
    one = measure(f"{episodes * STEPS} steps: one trajectory", lambda: store.trace(ids[len(ids) // 2] or 0), "100")
    store.close()
    return [add, frame, one]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=5_000)
    parser.add_argument("--huge", type=int, default=50_000)
    parser.add_argument("--episodes", type=int, default=5_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="harnesslab bench ") as name:
        folder = Path(name)
        rows = (
            refs(folder, options.many, "100") + refs(folder, options.huge, "1000") + records(folder, options.episodes)
        )
    print(f"{'call':<52} {'median ms':>10} {'p95 ms':>10} {'target':>14}")
    for label, median, p95, target in rows:
        print(f"{label:<52} {median:>10.2f} {p95:>10.2f} {target:>14}")


if __name__ == "__main__":
    main()
