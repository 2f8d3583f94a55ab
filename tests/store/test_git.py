"""The git runner: deadlines, and one sentence for each kind of trouble."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnesslab.errors import StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo, RunStore
from harnesslab.store.git import Git, GitFailed, time_limit


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small file system of its own; skips where that is not allowed."""
    point = tmp_path / "kleine Platte"
    point.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a file system of one's own needs root")

    def mount(options: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(point)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("this machine does not let us mount a file system")
        return point

    yield mount
    subprocess.run(["umount", "-l", str(point)], capture_output=True, check=False)


def test_a_deadline_kills(repo: LabRepo) -> None:
    began = time.monotonic()
    with pytest.raises(GitFailed, match=r"longer than 0\.3 s"):
        # The alias starts a child of its own; the whole group must go.
        Git(repo.path).run("-c", "alias.slow=!sleep 30", "slow", deadline=0.3)
    assert time.monotonic() - began < 10


def test_a_limit_for_several_commands(repo: LabRepo) -> None:
    git = Git(repo.path)
    with time_limit(time.monotonic() + 0.4):
        git.text("rev-parse", "HEAD")
        with pytest.raises(GitFailed) as stopped:
            git.run("-c", "alias.slow=!sleep 30", "slow")
        with pytest.raises(GitFailed, match="was stopped"):
            git.run("-c", "alias.slow=!sleep 30", "slow")
    assert stopped.value.cause == "deadline"
    assert git.text("rev-parse", "HEAD"), "outside, the usual deadline holds again"


def test_without_git(repo: LabRepo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="git program was not found"):
        repo.baseline()


def test_a_vanished_lab(repo: LabRepo) -> None:
    shutil.rmtree(repo.path)
    with pytest.raises(StoreError, match="moved or deleted"):
        repo.baseline()


def test_another_owner(repo: LabRepo) -> None:
    if os.geteuid() != 0:
        pytest.skip("changing the owner of a folder needs root")
    os.chown(repo.path, 12345, 12345)
    os.chown(repo.git_dir, 12345, 12345)
    with pytest.raises(StoreError, match=r"another user owns it.*safe\.directory"):
        LabRepo.open(repo.path)


def test_a_damaged_object(repo: LabRepo) -> None:
    commit = repo.baseline()
    path = repo.git_dir / "objects" / commit[:2] / commit[2:]
    path.chmod(0o644)
    path.write_bytes(b"")
    with pytest.raises(StoreError, match=r"damaged|git fsck"):
        repo.propose({"a": "b"}, "x")


def test_a_damaged_config(repo: LabRepo) -> None:
    (repo.git_dir / "config").write_text("[core\n")
    with pytest.raises(StoreError, match="damaged"):
        LabRepo.open(repo.path)


def test_a_full_disk(small_disk: Callable[[str], Path]) -> None:
    disk = small_disk("size=600k")
    repo = LabRepo.create(disk / "lab", {"harness.toml": "x"})
    store = RunStore.open(repo.path)
    candidate = repo.propose({"a": "1"}, "one")
    filler = disk / "filler"
    with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    with pytest.raises(StoreError, match=r"disk is full|cannot be written|No space"):
        Ledger(repo).reject(candidate.id, {"reason": "x" * 10_000})
    run = None
    with pytest.raises(StoreError, match="disk is full"):
        for _ in range(200):
            run = store.begin_run("0", {}, split="search", meta={"x": "y" * 50_000})
    filler.unlink()
    assert LabRepo.open(repo.path).candidate(candidate.id).state == "pending"
    Ledger(repo).reject(candidate.id, {"reason": "x"})
    run = run or store.begin_run("0", {}, split="search")
    assert store.add_episode(run, {"task_id": "t"}, [{"a": 1}]) is not None
    store.close()


def test_a_read_only_lab_can_be_looked_at(small_disk: Callable[[str], Path]) -> None:
    disk = small_disk("size=8m")
    repo = LabRepo.create(disk / "lab", {"harness.toml": "x"})
    candidate = repo.propose({"a": "1"}, "one")
    store = RunStore.open(repo.path)
    run = store.begin_run("0", {}, split="search")
    store.add_episode(run, {"task_id": "t"}, [{"a": 1}])
    store.close()
    repo.close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    looked = LabRepo.open(repo.path)
    assert looked.candidates().rows[0].id == candidate.id and looked.dirty() == []
    with pytest.raises(StoreError, match=r"read-only|Read-only|writable"):
        Ledger(looked).reject(candidate.id, {})
    records = RunStore.open(repo.path)
    assert records.read_only and records.trace(records.episodes(run)[0]["id"]) == [{"a": 1}]
    with pytest.raises(StoreError, match="read-only"):
        records.add_event("x", {})
    with pytest.raises(StoreError, match="read-only"):
        records.add_episode(run, {"task_id": "t2"}, [])
    records.close()
