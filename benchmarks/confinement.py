"""What confinement costs a hook: the same Python intervention in a process of its own and in this one, in turns.

Each pair of calls gets the same context; the ratio of each pair counts. The confined side is sent what is new since the
step before, so its cost must not grow with the episode. Run: python benchmarks/confinement.py [--episodes 20]
"""

from __future__ import annotations

import argparse
import statistics
import time

from harnesslab.harness import Context, Pipeline, Proposal, Turn, load_harness

FILES = {
    "harness.toml": b'name = "bench"\n',
    "action/look.py": b"""
def realize(context, proposal):
    seen = {turn["observation"] for turn in context["history"][-5:]}
    return None if context["observation"] in seen else {**proposal, "action": "look"}
""",
}
TOOLS = tuple({"type": "function", "function": {"name": f"tool_{n}", "parameters": {"type": "object", "properties": {}}}} for n in range(20))  # fmt: skip
TEXT = "A drawer, a table and a lamp are here. " * 25
AT = (1, 5, 20, 50, 100, 200)
LIMIT_MS = 0.5


def timed(pipeline: Pipeline, context: Context) -> float:
    """Milliseconds of one call of the hook, checks of what it returns included."""
    intervention, proposal = pipeline.harness.interventions[0], Proposal("Action: open the drawer", "open the drawer")
    started = time.perf_counter()
    intervention.realize(context, proposal)
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    """Print one row for each length of the episode."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20)
    episodes = parser.parse_args().episodes
    confined, inside = (load_harness(FILES, unconfined=one) for one in (False, True))
    starts: list[float] = []
    calls: dict[int, list[tuple[float, float]]] = {}
    for _ in range(episodes):
        sides = Pipeline(confined).episode(), Pipeline(inside).episode()
        history: tuple[Turn, ...] = ()
        for step in range(AT[-1] + 1):
            context = Context("Tidy up.", f"{TEXT}{step}", history, tools=TOOLS, step=step, budget=AT[-1] + 1)
            order = (0, 1) if step % 2 else (1, 0)
            taken = {side: timed(sides[side], context) for side in order}
            if step == 0:
                starts.append(taken[0])
            calls.setdefault(step, []).append((taken[0], taken[1]))
            history = (*history, Turn(context.observation, "Action: look", "look", "You looked."))
        for side in sides:
            side.close()
    print(f"the first call of an episode waits for the process: {statistics.median(starts):.0f} ms at the median\n")
    print("| turns before | confined, ms | 99% | in this process, ms | ratio of pairs |\n|---|---|---|---|---|")
    for step in AT:
        near = [pair for one in range(max(1, step - 4), step + 1) for pair in calls[one]]
        ours, other = [sorted(side) for side in zip(*near, strict=True)]
        ratio = statistics.median(a / b for a, b in near)
        row = (step, f"{statistics.median(ours):.3f}", f"{ours[int(len(ours) * 0.99)]:.3f}", f"{statistics.median(other):.3f}", f"{ratio:.2f}")  # fmt: skip
        print("| " + " | ".join(map(str, row)) + " |")
    every = [pair[0] for step, pairs in calls.items() if step for pair in pairs]
    print(f"\nmedian of {len(every)} confined calls: {statistics.median(every):.3f} ms; the limit is {LIMIT_MS} ms")


if __name__ == "__main__":
    main()
