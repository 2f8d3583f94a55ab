"""How quick the sidebar is, and what it costs a training run. Prints one table.

    python benchmarks/sidebar.py [--many 5000] [--huge 50000] [--pairs 5]

Endpoints are asked over HTTP on a real JupyterLab; the paint is timed inside a real Chromium; the training run is
measured in a process of its own, in pairs: the sidebar visible, and the browser on an empty page. Its backbone answers
after a fixed time, as a served model does, so that the run does not compete with the browser for the processor alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "browser"), str(HERE.parent)]

import labdriver  # noqa: E402
from store import fill  # noqa: E402

from harnesslab.store import LabRepo  # noqa: E402

STARTER = {"harness.toml": 'name = "bench"\n', "contract/base.yaml": "kind: prompt\ntext: Act.\n"}
REPEATS = 40
PAINTS = 7
TRAIN = """
import asyncio, sys, time
import harnesslab as hl
from harnesslab.llm.types import Completion

class Served:
    identity = {"model": "served", "seconds": float(sys.argv[2])}
    constrains = False
    async def complete(self, request, *, repeat=0):
        await asyncio.sleep(float(sys.argv[2]))
        return Completion(text="look", model="served", body={"messages": list(request.messages)})

lab = hl.Lab.open(sys.argv[1], env="kitchen")
trainer = hl.Trainer(lab=lab, llm=Served(), estimator=hl.ManualEstimator(), criterion=hl.StrictPareto(),
                     optimizer=hl.GreedyMonotonic(), settings={"search": int(sys.argv[3]), "seed": int(sys.argv[4])})
start = time.perf_counter()
trainer.measure()
print("SECONDS", time.perf_counter() - start)
"""
Row = tuple[str, str, str]


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=5_000, help="candidates of the first lab")
    parser.add_argument("--huge", type=int, default=50_000, help="candidates of the second lab")
    parser.add_argument("--pairs", type=int, default=5, help="paired training runs; 0 leaves them out")
    options = parser.parse_args()
    rows: list[Row] = [bundle()]
    with tempfile.TemporaryDirectory() as scratch:
        home, root = Path(scratch, "home"), Path(scratch, "root")
        home.mkdir()
        for name, count in (("many", options.many), ("huge", options.huge)):
            repo = LabRepo.create(root / name, STARTER)
            fill(repo, count)
            repo.close()
        with labdriver.running_lab(home, root) as server, labdriver.running_browser() as browser:
            rows += endpoint(server, "many", options.many, "100 ms")
            rows += endpoint(server, "huge", options.huge, "1 s")
            context = browser.new_context(viewport={"width": 1400, "height": 900})
            context.set_default_timeout(60_000)
            rows.append(first_paint(context, server, options.many))
            if options.pairs:
                rows += slowdown(context, server, options.pairs)
    width = max(len(row[0]) for row in rows)
    print(f"{'what':{width}}  {'measured':>28}  target")
    for what, measured, target in rows:
        print(f"{what:{width}}  {measured:>28}  {target}")


def bundle() -> Row:
    """The size of everything that ships to the browser."""
    built = labdriver.REPOSITORY / "harnesslab" / "labextension"
    size = sum(file.stat().st_size for file in built.rglob("*") if file.is_file())
    return ("extension, all files", f"{size / 1000:.0f} kB", "300 kB")


def endpoint(server: labdriver.LabServer, lab: str, count: int, target: str) -> list[Row]:
    """A page of refs from the whole length of the list, in every order and with filters; the first one builds the index."""
    choose = random.Random(0)

    def ask() -> None:
        query = {
            "lab": lab,
            "state": choose.choice(["rejected", "rejected", "pending"]),
            "sort": choose.choice(["time", "delta"]),
            "order": choose.choice(["asc", "desc"]),
            "text": choose.choice(["", "", "idea 4"]),
            "reason": choose.choice(["", "", "task 7"]),
            "offset": choose.randrange(count),
            "limit": 50,
        }
        get(server, "refs", query)

    first = timed(ask)
    before = cpu_seconds(server.pid)
    times = sorted(timed(ask) for _ in range(REPEATS))
    spent = (cpu_seconds(server.pid) - before) / REPEATS
    median, slow = statistics.median(times), times[int(0.95 * len(times))]
    live = statistics.median(timed(lambda: get(server, "live", {"lab": lab})) for _ in range(REPEATS))
    return [
        (f"refs endpoint, {count} candidates, a page", f"{ms(median)} (95 %: {ms(slow)})", target),
        (f"refs endpoint, {count} candidates, a page, CPU", f"{ms(spent)} (mean)", ""),
        (f"refs endpoint, {count} candidates, first time", ms(first), ""),
        (f"live endpoint, {count} candidates", ms(live), ""),
    ]


def first_paint(context: Any, server: labdriver.LabServer, count: int) -> Row:
    """From the command that shows the sidebar to the frame in which its rows are painted, in fresh pages."""
    times = []
    for _ in range(PAINTS):
        page = labdriver.open_lab(context, server)
        times.append(
            page.evaluate(
                """async () => {
                    const start = performance.now();
                    void window.jupyterapp.commands.execute('harnesslab:show');
                    const painted = () => document.querySelector('.jp-harnesslab-RowName') !== null;
                    while (!painted()) {
                        await new Promise(requestAnimationFrame);
                    }
                    await new Promise(requestAnimationFrame);
                    return (performance.now() - start) / 1000;
                }"""
            )
        )
        page.close()
    return (
        f"first paint of the sidebar, {count} refs",
        f"{ms(statistics.median(times))} (max {ms(max(times))})",
        "1 s",
    )


def slowdown(context: Any, server: labdriver.LabServer, pairs: int) -> list[Row]:
    """The same training run with the sidebar watching it and without, alternating; the ratio of each pair."""
    page = labdriver.open_lab(context, server)
    labdriver.run_command(page, "harnesslab:show")
    sidebar = page.locator("#harnesslab-sidebar")
    sidebar.get_by_role("heading", name="Harness labs").wait_for()
    lab = server.root / "train"
    train(lab, 0)  # makes the lab, and warms what there is to warm
    labdriver.run_command(page, "harnesslab:refresh")
    sidebar.get_by_label("Lab", exact=True).select_option("train")
    ratios, plain = [], []
    for number in range(pairs):
        seconds = {}
        for watched in (True, False) if number % 2 else (False, True):
            labdriver.run_command(page, "harnesslab:show" if watched else "filebrowser:activate")
            seconds[watched] = train(lab, 1 + 2 * number + watched)
        ratios.append(seconds[True] / seconds[False])
        plain.append(seconds[False])
    page.close()
    middle = (statistics.median(ratios) - 1) * 100
    spread = f"{(min(ratios) - 1) * 100:+.1f} to {(max(ratios) - 1) * 100:+.1f} %"
    return [
        ("training run, sidebar visible", f"{middle:+.1f} % ({spread})", "at most +2 %"),
        (f"training run of {statistics.median(plain):.1f} s, pairs", str(pairs), ""),
    ]


def train(lab: Path, seed: int) -> float:
    """One training run in a process of its own, in seconds; another seed is another measurement, so nothing is replayed."""
    command = [sys.executable, "-c", TRAIN, str(lab), "0.02", "20", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=labdriver.REPOSITORY)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return float(done.stdout.split("SECONDS")[1])


def get(server: labdriver.LabServer, name: str, query: dict[str, Any]) -> Any:
    """The answer of an endpoint."""
    address = f"{server.url}harnesslab/{name}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"Authorization": f"token {labdriver.TOKEN}"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read())


def cpu_seconds(pid: int) -> float:
    """What a process and the children that it has waited for have used; counted in ticks of the kernel (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ms(seconds: float) -> str:
    """Seconds as milliseconds."""
    return f"{seconds * 1000:.0f} ms"


if __name__ == "__main__":
    main()
