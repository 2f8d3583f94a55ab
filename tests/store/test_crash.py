"""Two processes at once, and processes killed at random points: nothing is lost, one state each."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harnesslab.errors import BaselineMoved, StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo
from harnesslab.store.moves import RefMove
from harnesslab.store.refs import BASELINE, FOLDERS

Run = Callable[..., str]

WORKER = """
import sys
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo
repo = LabRepo.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
number = 0
while True:
    number += 1
    one = repo.propose({"a.yaml": f"{sys.argv[2]} {number}\\n"}, f"{sys.argv[2]} {number}")
    print(one.id, flush=True)
    if number % 2:
        Ledger(repo).promote(one.id, {"reason": "p", "number": number})
    else:
        Ledger(repo).reject(one.id, {"reason": "r", "number": number})
    print("done " + one.id, flush=True)
"""

RACER = """
import sys
from harnesslab.errors import BaselineMoved
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo
repo = LabRepo.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    Ledger(repo).promote(sys.argv[2], {"reason": sys.argv[2]})
    print("won")
except BaselineMoved:
    print("lost")
"""


def start(script: str, *args: object) -> subprocess.Popen[str]:
    """A real process that says 'ready', then waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def places(git: Run) -> dict[str, list[str]]:
    """Every candidate id and the refs that it lies under."""
    found: dict[str, list[str]] = {}
    for ref in git("for-each-ref", "--format=%(refname)", "refs/harnesslab").split():
        found.setdefault(ref.rsplit("/", 1)[1], []).append(ref)
    return found


def test_two_processes_racing_to_promote(repo: LabRepo, git: Run) -> None:
    rivals = [repo.propose({f"{n}.yaml": "x"}, f"rival {n}") for n in range(2)]
    processes = [start(RACER, repo.path, rival.id) for rival in rivals]
    for process in processes:
        go(process)
    answers = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert sorted(answers) == ["lost", "won"]
    winner = rivals[answers.index("won")]
    assert repo.baseline() == winner.commit and repo.counts() == {"promoted": 1, "pending": 1}
    assert git("status", "--porcelain") == ""


@pytest.mark.parametrize("seed", range(6))
def test_kill_9_at_a_random_point(repo: LabRepo, git: Run, seed: int) -> None:
    """The worker dies a random number of milliseconds into its work; the git that it started may run on."""
    process = start(WORKER, repo.path, "w")
    go(process)
    try:
        process.wait(timeout=random.Random(seed).uniform(0.05, 0.6))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    process.wait()
    assert process.returncode == -signal.SIGKILL
    told = [line for line in lines if not line.startswith("done ")]
    finished = [line.split()[1] for line in lines if line.startswith("done ")]

    again = LabRepo.open(repo.path)
    found = places(git)
    assert all(len(refs) == 1 for refs in found.values()), found
    assert set(told) <= set(found)
    for name in finished:
        verdict = again.verdict(again.candidate(name).commit)
        assert verdict is not None and verdict["state"] == again.candidate(name).state
    for name in found:
        candidate = again.candidate(name)
        if candidate.state == "promoted":
            assert git("merge-base", "--is-ancestor", candidate.commit, "main") == "" and candidate.verdict
    assert sum(again.counts().values()) == len(found)
    assert git("status", "--porcelain") == "" and git("fsck", "--strict", "--no-dangling") == ""
    last = again.propose({"after.yaml": "x"}, "the lab still works")
    assert Ledger(again).promote(last.id, {}).left == () and git("status", "--porcelain") == ""


@pytest.mark.parametrize("applied", range(5))
def test_a_move_cut_between_its_refs_is_finished(
    repo: LabRepo, git: Run, applied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git is killed after `applied` of the four refs of a promotion: all of them move in the end, or none did."""
    candidate = repo.propose({"a.yaml": "1", "harness.toml": "new"}, "one")
    moves_made: list[RefMove] = []

    def cut(self: object, moves: list[RefMove], reason: str) -> None:
        moves_made.extend(moves)
        for move in moves[:applied]:
            git("update-ref", *(["-d", move.ref] if move.new is None else [move.ref, move.new]))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("harnesslab.store.moves.Moves._update", cut)
        with pytest.raises(KeyboardInterrupt):
            Ledger(repo).promote(candidate.id, {"reason": "good"})
    assert len(moves_made) == 4

    again = LabRepo.open(repo.path)
    state = "promoted" if applied else "pending"
    assert places(git) == {candidate.id: [FOLDERS[state] + candidate.id]}  # type: ignore[index]
    assert again.candidates().rows[0].state == again.candidate(candidate.id).state == state
    assert (again.baseline() == candidate.commit) == bool(applied)
    assert git("status", "--porcelain") == ""
    assert (again.verdict(candidate.commit) is not None) == bool(applied)


def test_a_move_that_was_only_written_down_is_made(repo: LabRepo, git: Run) -> None:
    """The process died after the log was written; its git may not have started, or may be starting right now."""
    candidate = repo.propose({"a.yaml": "1"}, "one")
    moves = [{"ref": FOLDERS["rejected"] + candidate.id, "old": None, "new": candidate.commit}]
    moves += [{"ref": candidate.ref, "old": candidate.commit, "new": None}]
    (repo.git_dir / "harnesslab/move.json").write_text(json.dumps(moves))
    assert LabRepo.open(repo.path).candidate(candidate.id).state == "rejected"
    assert not (repo.git_dir / "harnesslab/move.json").exists()


@pytest.mark.parametrize("text", ["", "[{", "[1]", "{}", '[{"ref": "x"}]'])
def test_a_torn_log_is_dropped(repo: LabRepo, text: str) -> None:
    (repo.git_dir / "harnesslab").mkdir(exist_ok=True)
    (repo.git_dir / "harnesslab/move.json").write_text(text)
    again = LabRepo.open(repo.path)
    again.propose({"a": "b"}, "works")
    assert not (repo.git_dir / "harnesslab/move.json").exists()


def test_locks_of_a_dead_git_are_cleared_when_a_move_is_finished(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"a.yaml": "1"}, "one")
    moves = [{"ref": BASELINE, "old": candidate.parent, "new": candidate.commit}]
    moves += [{"ref": FOLDERS["promoted"] + candidate.id, "old": None, "new": candidate.commit}]
    moves += [{"ref": candidate.ref, "old": candidate.commit, "new": None}]
    (repo.git_dir / "harnesslab/move.json").write_text(json.dumps(moves))
    git("update-ref", "--no-deref", BASELINE, candidate.commit)
    for name in ("refs/heads/main.lock", "HEAD.lock"):
        (repo.git_dir / name).touch()
        os.utime(repo.git_dir / name, (1, 1))
    again = LabRepo.open(repo.path)
    assert again.candidate(candidate.id).state == "promoted" and git("status", "--porcelain") == ""


def test_a_lock_held_by_plain_git_is_named_and_moves_nothing(repo: LabRepo) -> None:
    candidate = repo.propose({"a.yaml": "1"}, "one")
    lock = repo.git_dir / "refs/heads/main.lock"
    lock.touch()
    with pytest.raises(StoreError, match=r"main\.lock"):
        Ledger(repo).promote(candidate.id, {})
    lock.unlink()
    assert repo.candidate(candidate.id).state == "pending"
    Ledger(repo).promote(candidate.id, {})


def test_plain_git_moving_main_under_our_feet(repo: LabRepo, git: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = repo.propose({"a.yaml": "1"}, "one")
    from harnesslab.store import settle

    genuine = settle.write_note

    def meddle(*args: object) -> str:
        git("commit", "-q", "--allow-empty", "-m", "meddle")
        return genuine(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(settle, "write_note", meddle)
    with pytest.raises(BaselineMoved, match="another program"):
        Ledger(repo).promote(candidate.id, {})
    assert (
        repo.candidate(candidate.id).state == "pending"
        and Path(repo.git_dir / "harnesslab/move.json").exists() is False
    )
