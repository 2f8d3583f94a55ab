"""Makes labs for the tests of the server and of the browser: through the store, as the trainer does, but without a model."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesslab.ledger import Flip, Ledger, Verdict, now
from harnesslab.store import Candidate, LabRepo, RunStore

MARKUP = "<img src=x onerror=\"window.hacked='yes'\"><script>window.hacked='yes'</script>"
"""Text that must never become part of the page."""

TASKS = tuple(f"t{number}" for number in range(6))
STARTER = {
    "harness.toml": 'name = "starter"\nformat = 1\n',
    "contract/base.yaml": "kind: prompt\ntext: Say what you do next.\n",
}
IDENTITY = {"environment": "kitchen", "version": "1", "backbone": {"model": "smollm2-135m"}, "budget": 10}


def propose(repo: LabRepo, path: str, text: str, about: str, **meta: Any) -> Candidate:
    """A candidate that writes one file."""
    layer, _, stem = path.partition("/")
    facts = {
        "layer": layer,
        "kind": "snap",
        "name": path.removesuffix(".yaml"),
        "estimator": "MiningEstimator",
        "about": about,
        "evidence": [{"task": "t0", "episode": 1, "step": 1, "what": f"The reply is no action {MARKUP}"}],
        "prediction": {"flips": ["t1"], "trigger": path.removesuffix(".yaml")},
        "content": stem,
    }
    return repo.propose({path: text}, about, facts | meta)


def verdict(
    candidate: Candidate,
    solved: Mapping[str, Sequence[str]],
    decision: Any,
    runs: Mapping[str, str] | None = None,
    why: str = "",
) -> dict[str, Any]:
    """A criterion's verdict as the trainer writes it."""
    before, after = set(solved["baseline"]), set(solved["candidate"])
    flips = tuple(Flip(task, task in before, task in after, task == "t5") for task in sorted(before ^ after))
    return Verdict(
        criterion="StrictPareto",
        value=float("inf") if before - after else float(len(before) - len(after)),
        decision=decision,
        baseline=candidate.parent,
        candidate=candidate.commit,
        solved={"baseline": sorted(before), "candidate": sorted(after)},
        flips=flips,
        metrics={"invalid": (3.0, 1.0), "steps": (21.0, 17.5)},
        statistics={"p": 0.03125},
        cost={"calls": 44, "prompt_tokens": 9000, "completion_tokens": 800, "seconds": 12.5},
        identity=IDENTITY,
        runs=dict(runs or {}),
        tasks=len(TASKS),
        why=why,
        when=now(),
    ).to_json()


def play(store: RunStore, commit: str, solved: Sequence[str], split: str = "gate") -> str:
    """A finished run of all tasks in which `solved` were solved; its traces part at step 2 (index 1)."""
    run = store.begin_run(commit, IDENTITY, split=split, backbone="smollm2-135m")
    for task in TASKS:
        good = task in solved
        summary = {"task_id": task, "family": "fetch", "solved": good, "steps": 3, "status": "finished"}
        store.add_episode(run, summary, [step(0, False), step(1, good), step(2, good)])
    store.finish_run(run)
    return run


def step(index: int, good: bool) -> dict[str, Any]:
    """One step of a trace."""
    said = "go to the kitchen" if good else f"I would like to go {MARKUP}"
    return {
        "index": index,
        "observation": f"You are in the hall. Step {index}. {MARKUP}",
        "request": {"messages": [{"role": "user", "content": f"What next? {MARKUP}"}], "temperature": 0},
        "replies": [{"text": said, "model": "smollm2-135m"}],
        "raw": said,
        "action": "go kitchen" if good else None,
        "executed": good,
        "problem": "" if good else "not an action",
        "result": "You are in the kitchen." if good else "Nothing happens.",
        "invalid": not good,
        "reward": 1.0 if good and index == 2 else 0.0,
        "fired": ["action/snap"] if good else [],
        "note": "",
        "seconds": 0.1,
    }


def make_lab(folder: Path) -> dict[str, str]:
    """A lab with one of everything; returns the ids of its candidates by what became of them.

    Baseline history: start, promoted `first`, promoted `second`. Rejected: `lost` (by the criterion), `doubted`
    (by a person), both made on the start. On the baseline: `pending`, `markup` (pending) and `undecided`.
    """
    repo = LabRepo.create(folder, STARTER)
    store = RunStore.open(folder)
    start = repo.baseline()
    runs = {"baseline": play(store, start, ["t0"])}
    lost = propose(repo, "regulation/stop.yaml", "kind: stagnation\nafter: 1\n", "Stop at the first repeat")
    doubted = propose(repo, "contract/base.yaml", "kind: prompt\ntext: Think, then act.\n", "Ask for thoughts")
    first = propose(repo, "action/snap.yaml", "kind: snap\nthreshold: 80\n", "Snap to the nearest action")
    runs["candidate"] = play(store, lost.commit, [])
    Ledger(repo).reject(
        lost.id, verdict(lost, {"baseline": ["t0"], "candidate": []}, "reject", runs, f"loses t0 {MARKUP}")
    )
    person = Verdict.from_json(
        verdict(doubted, {"baseline": ["t0"], "candidate": ["t0", "t1"]}, "promote", why="gains")
    )
    Ledger(repo).reject(doubted.id, person.by_person("reject", "Ada", "Too wordy for this model").to_json())
    runs["candidate"] = play(store, first.commit, ["t0", "t1", "t2"])
    Ledger(repo).promote(
        first.id, verdict(first, {"baseline": ["t0"], "candidate": ["t0", "t1", "t2"]}, "promote", runs)
    )
    second = propose(repo, "regulation/loop.yaml", "kind: loop_breaker\nwindow: 3\n", "Break loops")
    runs = {"baseline": runs["candidate"], "candidate": play(store, second.commit, list(TASKS[:5]))}
    Ledger(repo).promote(
        second.id, verdict(second, {"baseline": ["t0", "t1", "t2"], "candidate": list(TASKS[:5])}, "promote", runs)
    )
    pending = propose(repo, "skill/recipe.yaml", "kind: procedure\ntext: Heat before you serve.\n", "Teach the recipe")
    markup = propose(repo, "skill/markup.yaml", f"kind: procedure\ntext: '{MARKUP}'\n", f"Odd text {MARKUP}")
    undecided = propose(repo, "action/rank.yaml", "kind: rerank\nsamples: 3\n", "Choose the best of three")
    Ledger(repo).shelve(
        undecided.id, verdict(undecided, {"baseline": list(TASKS[:5]), "candidate": list(TASKS[1:])}, "undecided")
    )
    play(store, second.commit, list(TASKS[:4]), split="search")
    store.close()
    repo.close()
    names = {
        "lost": lost, "doubted": doubted, "first": first, "second": second,
        "pending": pending, "markup": markup, "undecided": undecided,
    }  # fmt: skip
    return {name: candidate.id for name, candidate in names.items()} | {"start": start}


def make_foreign(folder: Path) -> None:
    """A repository as harness-training leaves it: two candidates, one of them merged."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "agent.py").write_text("PROMPT = 'a'\n", encoding="utf-8")
    commit(folder, "Start")
    for name, text, merged in (("good", "PROMPT = 'b'\n", True), ("bad", "PROMPT = 'c'\n", False)):
        (folder / "agent.py").write_text(text, encoding="utf-8")
        commit(folder, f"Try {name}")
        git(folder, "update-ref", f"refs/candidates/{git(folder, 'rev-parse', 'HEAD')}", "HEAD")
        if not merged:
            git(folder, "reset", "-q", "--hard", "HEAD~1")


def commit(folder: Path, message: str) -> None:
    """Commit everything in the folder."""
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", message)


def git(folder: Path, *args: str) -> str:
    """Plain git, to look at what the sidebar has done."""
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
