"""Whole trainings on synthetic worlds: what each policy has learned after 500 and 1,000 episodes, and how often it was fooled.

The lab, the trainer, the criteria and the designs are the product's own; only the model and the environment are made up, since the truth must
be known. An episode is one step: the model reads from the prompt which interventions are on and from the observation which task it is,
and gives the right answer with the probability that the world has for them. Every episode is charged, on whichever split.

    python benchmarks/policies.py --trainings 8 --first-seed 1000          # goes on where it was stopped
    python benchmarks/policies.py --table                                  # only prints what is stored

Seeds below 1000 were used while the methods were made; the published table starts at 1000.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
import shutil
import statistics
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harnesslab as hl
from harnesslab.harness import Harness
from harnesslab.llm import Completion
from harnesslab.rollout.env import Split, Task
from harnesslab.trainer.estimators.base import judged
from harnesslab.trainer.proposal import Proposal, Proposals

RESULTS = Path(__file__).parent / "results" / "policies.json"
STARTER = Path(__file__).parent / "null_starter"
BUDGETS = (500, 1000)
SPLIT_TASKS = {"search": 48, "gate": 60, "sealed": 1}
TRUTH_TASKS = 400
CAUSES = 8


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


@dataclass(frozen=True)
class World:
    """How tasks are solved. ``good``, ``bad``: shares of interventions that help and hurt, by ``size`` logits at most.

    ``causes``: each task has one to three causes of failure, each of which some interventions remove; a task is solved when all are gone.
    ``interaction``: size of the pairwise terms. ``sampling``: greedy (an outcome for each wording), seeded (a draw for each repeat), or free.
    """

    name: str
    start: float = -1.8
    spread: float = 1.6
    good: float = 0.35
    bad: float = 0.25
    size: float = 1.6
    interventions: int = 24
    interaction: float = 0.0
    causes: bool = False
    sampling: str = "seeded"


WORLDS = [
    World("greedy decoding", sampling="greedy"),
    World("seeded sampling"),
    World("free sampling", sampling="free"),
    World("weak effects", size=0.7),
    World("12% good, 50% bad", good=0.12, bad=0.5),
    World("start near zero", start=-5.0, size=2.0),
    World("strong interactions", interaction=0.8),
    World("several causes at once", causes=True),
    World("several causes, 8 proposals", causes=True, interventions=8),
]


@dataclass
class Truth:
    """One drawn world: effects, and the solve probability of any task under any set of interventions."""

    world: World
    seed: int
    effects: dict[str, float] = field(default_factory=dict)
    pairs: dict[frozenset[str], float] = field(default_factory=dict)
    removes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        dice = random.Random(f"{self.world.name}/{self.seed}")
        names = [f"x{n:02}" for n in range(self.world.interventions)]
        for name in names:
            draw, size = dice.random(), self.world.size * dice.uniform(0.4, 1)
            good = draw < self.world.good
            bad = not good and draw < self.world.good + self.world.bad
            self.effects[name] = size if good else -size if bad else 0.0
            if self.world.causes and good:
                self.removes[name] = dice.randrange(CAUSES)
        if self.world.interaction:
            for one, other in itertools.combinations(names, 2):
                if dice.random() < 0.15:
                    self.pairs[frozenset((one, other))] = dice.gauss(0, self.world.interaction)

    def solves(self, task: str, on: frozenset[str]) -> float:
        dice = random.Random(f"{self.world.name}/{self.seed}/{task}")
        intercept = dice.gauss(self.world.start, self.world.spread)
        if self.world.causes:
            has = set(dice.sample(range(CAUSES), dice.randint(1, 3)))
            left = has - {self.removes[name] for name in on if name in self.removes}
            harm = sum(self.effects[name] for name in on if self.effects[name] < 0)
            return (0.92 if not left else 0.04) * sigmoid(3 + harm)
        total = intercept + sum(self.effects[name] for name in on)
        return sigmoid(total + sum(size for pair, size in self.pairs.items() if pair <= on))

    def rate(self, on: frozenset[str]) -> float:
        """The true solve rate, in percent, over tasks that no split has."""
        return 100 * statistics.fmean(self.solves(f"fresh-{n}", on) for n in range(TRUTH_TASKS))


class OneStep:
    """An environment whose tasks take one action, which is right or wrong."""

    version, max_steps = "1", 1

    def __init__(self, name: str):
        self.name = name

    def tasks(self, split: Split) -> list[Task]:
        return [Task(f"{split}-{n}", split, "f", n, {"name": f"{split}-{n}"}) for n in range(SPLIT_TASKS[split])]

    def make(self) -> Any:
        return _Play()

    def oracle(self, task: Task) -> Any:
        return lambda observation, info: "right"

    def starter(self) -> Path:
        return STARTER


class _Play:
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict]:
        self.name = options["name"]
        return f"Task <{self.name}>.", _info(self.name, False)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict]:
        solved = action == "right"
        return "Done.", float(solved), True, False, _info(self.name, solved)

    def close(self) -> None:
        """Nothing is held."""


def _info(name: str, solved: bool) -> dict[str, Any]:
    return {"public": {"instruction": f"Do {name}."}, "private": {"solved": solved, "progress": float(solved)}}


class Model:
    """A backbone that solves as the world has it; counts its calls, which are episodes."""

    constrains = False

    def __init__(self, truth: Truth, limit: int):
        self.truth, self.limit, self.episodes = truth, limit, 0
        self.known: dict[tuple[str, frozenset[str]], float] = {}
        greedy = truth.world.sampling == "greedy"
        self.identity = {"model": "synthetic", "sampling": {"temperature": 0.0 if greedy else 1.0}}

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        text = " ".join(str(message["content"]) for message in request.messages)
        task, on = re.findall(r"Task <([\w-]+)>", text)[-1], frozenset(re.findall(r"\[(x\d\d)\]", text))
        self.episodes += 1
        key = (task, on)
        if key not in self.known:
            self.known[key] = self.truth.solves(*key)
        wording = "/".join(sorted(on))
        if self.truth.world.sampling == "free":
            draw = random.random()
        else:
            place = f"{self.truth.seed}/{task}/{wording}" + (
                "" if self.truth.world.sampling == "greedy" else f"/{repeat}"
            )
            draw = random.Random(place).random()
        return Completion(text="Action: right" if draw < self.known[key] else "Action: wrong", model="synthetic")


class Pool:
    """Offers the world's interventions that the harness does not have, in an order of its own: it cannot know which are good."""

    def __init__(self, truth: Truth, limit: int = 8):
        self.truth, self.limit = truth, limit

    def offering(self, count: int) -> Pool:
        return Pool(self.truth, max(self.limit, 2 * count))

    def propose(self, failures: Any, harness: Harness, history: Sequence[Any] = ()) -> Proposals:
        done = judged(history, failures.run.commit)
        names = random.Random(f"order/{self.truth.seed}").sample(sorted(self.truth.effects), len(self.truth.effects))
        found = []
        for name in names:
            path = f"contract/{name}.yaml"
            text = f"kind: prompt\nabout: Try {name}.\nparams:\n  text: '[{name}]'\n"
            proposal = Proposal(
                {path: text}, "contract", "prompt", f"contract/{name}", f"Try {name}.", estimator="pool"
            )
            if path not in harness.files and proposal.content not in done:
                found.append(proposal)
        return Proposals(found[: self.limit], ranked_by="nothing")


@dataclass(frozen=True)
class Policy:
    """A criterion, a design and how many tasks they get."""

    name: str
    criterion: Callable[[], Any]
    gate: int
    search: int = 15
    design: Callable[[], Any] = hl.OneAtATime


METRICS = ("progress", "invalid", "steps")
POLICIES = [
    Policy("StrictPareto, 15", lambda: hl.StrictPareto(tie_alpha=None), 15),
    Policy("NetSolve, 15", hl.NetSolve, 15),
    Policy("NetSolve(metrics), 15", lambda: hl.NetSolve(metrics=METRICS, tie_alpha=None), 15),
    Policy("PairedTest, 60", hl.PairedTest, 60),
    Policy("AnytimeTest, 60", hl.AnytimeTest, 60),
    Policy("Screening + AnytimeTest, 60", hl.AnytimeTest, 60, 48, hl.Screening),
]
TODAY = ("StrictPareto, 15", "NetSolve, 15", "NetSolve(metrics), 15", "PairedTest, 60")


def on_baseline(lab: Any) -> frozenset[str]:
    return frozenset(Path(path).stem for path in lab.repo.files(lab.repo.baseline()) if path.startswith("contract/x"))


def train(world: World, policy: Policy, seed: int) -> dict[str, Any]:
    """One training, up to the last budget; what was true after each."""
    truth = Truth(world, seed)
    model = Model(truth, BUDGETS[-1])
    folder = Path(tempfile.mkdtemp(prefix="policies-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    lab = hl.Lab.open(folder / "lab", env=OneStep(f"synthetic {world.name} {seed}"))
    trainer = hl.Trainer(
        lab, model, Pool(truth), policy.criterion(), design=policy.design(),
        settings={"progress": False, "search": policy.search, "gate": policy.gate, "seed": seed},
    )  # fmt: skip
    start = truth.rate(on_baseline(lab))
    points, rate, useless, promoted, gate = [(0, start)], start, 0, 0, None
    try:
        for loss in trainer.epochs(10_000):
            if model.episodes > BUDGETS[-1]:
                trainer.harness.zero_grad()
                break
            loss.backward()
            if trainer.optimizer.step():
                after = truth.rate(on_baseline(lab))
                promoted, useless = promoted + 1, useless + (after <= rate + 1e-9)
                rate = after
                gate = 100 * len(loss.verdict.solved["candidate"]) / max(1, loss.verdict.tasks)
                points.append((model.episodes, rate))
    finally:
        lab.close()
        shutil.rmtree(folder, ignore_errors=True)
    best = truth.rate(frozenset(name for name, size in truth.effects.items() if size > 0))
    at = {str(budget): [value for spent, value in points if spent <= budget][-1] for budget in BUDGETS}
    return {
        "start": start, "best": best, "rate": at, "promoted": promoted, "useless": useless, "episodes": model.episodes,
        "optimism": None if gate is None else gate - rate,
    }  # fmt: skip


def stored(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def mean(values: Sequence[float]) -> str:
    if not values:
        return ""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{statistics.fmean(values):.0f}±{error:.0f}"


def table(results: dict[str, Any], least: int = 1000) -> str:
    """The trainings with seeds from ``least`` on, as one Markdown table; a cell is the solve rate at 500 / 1,000 episodes."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, value in results.items():
        world, policy, seed = key.split("|")
        if int(seed) >= least:
            found.setdefault((world, policy), []).append(value)
    policies = [policy.name for policy in POLICIES if any(policy.name == name for _, name in found)]
    lines = ["| world | start | best | " + " | ".join(policies) + " |", "|---" * (3 + len(policies)) + "|"]
    for world in WORLDS:
        rows = {policy: found.get((world.name, policy), []) for policy in policies}
        some = [row for own in rows.values() for row in own]
        if not some:
            continue
        cells = [" / ".join(mean([row["rate"][str(b)] for row in rows[p]]) for b in BUDGETS) for p in policies]
        ends = [mean([row[key] for row in some]) for key in ("start", "best")]
        lines.append(f"| {world.name} | {' | '.join(ends)} | {' | '.join(cells)} |")
    for label, key in (
        ("promotions", "promoted"),
        ("of them no better than before", "useless"),
        ("gate minus truth", "optimism"),
    ):
        cells = []
        for policy in policies:
            values = [row[key] for (_, p), own in found.items() if p == policy for row in own if row[key] is not None]
            error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else float("nan")
            cells.append(f"{statistics.fmean(values):.2f}±{error:.2f}" if values else "")
        lines.append(f"| {label}, a training | | | {' | '.join(cells)} |")
    count = min(len(own) for own in found.values()) if found else 0
    return "\n".join([*lines, "", f"{count} or more trainings a cell; mean ± standard error, percent."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trainings", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--world", action="append", help="only these worlds")
    parser.add_argument("--policy", action="append", help="only these policies")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where they are kept")
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = stored(arguments.results)
    if not arguments.table:
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.trainings):
            for world, policy in itertools.product(WORLDS, POLICIES):
                key = f"{world.name}|{policy.name}|{seed}"
                chosen = (arguments.world or [world.name], arguments.policy or [policy.name])
                if key in results or world.name not in chosen[0] or policy.name not in chosen[1]:
                    continue
                results[key] = train(world, policy, seed)
                arguments.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(table(results, arguments.first_seed))


if __name__ == "__main__":
    main()
