"""Mining and measuring, round after round, around a scripted backbone in a small world.

The backbone is as small models are: it talks instead of acting, repeats itself, and takes what shares a word with the
task. A round measures the search tasks, proposes, and keeps the first proposal that makes the run better.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from harnesslab.harness import Harness, Pipeline, load_harness
from harnesslab.llm.types import Completion, Request
from harnesslab.rollout.env import Task
from harnesslab.rollout.records import Episode, Run
from harnesslab.rollout.runner import Job, Runner
from harnesslab.trainer.estimators import MiningEstimator
from harnesslab.trainer.failures import Failures
from harnesslab.trainer.proposal import Proposal

THINGS = ("cup", "pan", "jar", "pot", "bowl", "fork")
PLACES = ("shelf", "drawer", "bench", "rack", "crate", "stand")
BASELINE = load_harness(
    {"harness.toml": b'name = "small"\n[prompt]\nsystem = "Reply with one line: Action: COMMAND"\n'}
)


class World:
    """Fetch one thing from one place and put it on another."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict]:
        n = int(seed or 0)
        self.thing, self.source, self.target = THINGS[n % 6], PLACES[n % 6], PLACES[(n + 1 + n // 6) % 6]
        self.at = self.hand = ""
        self.solved = False
        return "You are outside.", self.info()

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict]:
        known = action in self.possible()
        text = "Nothing happens."
        if known:
            verb, rest = str(action).split(" ", 1)
            if verb == "visit":
                self.at = rest
                text = f"You are at the {rest}."
            elif verb == "take":
                self.hand, text = rest, f"You have the {rest}."
            else:
                self.solved, text = self.at == self.target, "It is placed."
                self.hand = ""
        return text, float(self.solved), self.solved, False, self.info(invalid=not known)

    def possible(self) -> list[str]:
        moves = [f"visit {place}" for place in PLACES if place != self.at]
        takes = [f"take {self.thing}"] if self.at == self.source and not self.hand else []
        return takes + moves + ([f"place {self.hand}"] if self.hand else [])

    def info(self, *, invalid: bool = False) -> dict:
        told = f"The {self.thing} is at the {self.source}. Put the {self.thing} on the {self.target}."
        public = {"instruction": told, "admissible": self.possible(), "invalid": invalid}
        return {"public": public, "private": {"solved": self.solved, "progress": 1.0 if self.solved else 0.0}}

    def close(self) -> None:
        pass


class SmallEnvironment:
    name, version, max_steps = "small", "1", 12

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(f"{split}-{n}", "search", "fetch", seed=n) for n in range(12)]

    def make(self) -> World:
        return World()


class Talker:
    """Talks where it may; held to choices, takes the one that shares most words with the task, the first of equals."""

    identity: Mapping[str, Any] = {"model": "talker"}
    constrains = True

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        said = str(request.messages[1]["content"])
        if not request.choices:
            return Completion("I think that I should have a look around first.")
        task = set(re.findall(r"\w+", said.lower()))
        return Completion(max(request.choices, key=lambda c: sum(w in task for w in re.findall(r"\w+", c.lower())[1:])))


def measure(harness: Harness) -> Run:
    env, episodes = SmallEnvironment(), list[Episode]()
    pipeline = Pipeline(harness)
    jobs = [Job("baseline", pipeline, task) for task in env.tasks("search")]
    asyncio.run(Runner(env, Talker()).run(jobs, lambda job, episode: bool(episodes.append(episode))))  # type: ignore[arg-type]
    commit = sha256(repr(sorted(harness.files.items())).encode()).hexdigest()
    return Run(1, commit, "search", {}, episodes)


def worth(run: Run) -> tuple[int, int]:
    return run.solved, -sum(episode.invalid for episode in run)


def train(rounds: int) -> tuple[list[int], list[Proposal]]:
    harness, run = BASELINE, measure(BASELINE)
    curve, promoted = [run.solved], list[Proposal]()
    for _ in range(rounds):
        for proposal in MiningEstimator().propose(Failures(run), harness):
            candidate = load_harness(proposal.apply(harness.files))
            after = measure(candidate)
            if worth(after) > worth(run):
                harness, run = candidate, after
                curve.append(run.solved)
                promoted.append(proposal)
                break
        else:
            break
    return curve, promoted


def test_mining_trains_a_harness_around_a_talker() -> None:
    curve, promoted = train(6)
    assert curve[0] == 0
    assert curve[-1] >= 9
    assert [proposal.kind for proposal in promoted][:2] == ["constrain", "no_repeat"]
    assert len(promoted) <= 4


def test_the_trigger_that_a_promoted_proposal_names_did_fire() -> None:
    _, promoted = train(1)
    run = measure(load_harness(promoted[0].apply(BASELINE.files)))
    assert all(episode.fired.get(promoted[0].prediction.trigger) for episode in run)
