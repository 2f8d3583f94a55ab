"""Locks that another git left, refs and names in the way, folders without write access: nothing moves, and the sentence has the remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harnesslab.errors import StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo
from harnesslab.store.worktree import _MARK
from tests.store import hostile

ACTS: dict[str, Callable[[LabRepo, hostile.Candidates], object]] = {
    "accept": lambda repo, ids: Ledger(repo).promote(ids.fitting, {}),
    "reject": lambda repo, ids: Ledger(repo).reject(ids.fitting, {}),
    "override": lambda repo, ids: Ledger(repo).override(ids.rejected, "me", "because"),
    "undo": lambda repo, ids: Ledger(repo).undo(ids.rejected),
    "roll back": lambda repo, ids: Ledger(repo).rollback(ids.first),
    "retry": lambda repo, ids: Ledger(repo).retry(ids.late),
    "propose": lambda repo, ids: repo.propose({"a.yaml": "1"}, "one"),
}
LOCKS = (
    "index.lock",
    "HEAD.lock",
    "packed-refs.lock",
    "refs/heads/main.lock",
    "refs/notes/harnesslab.lock",
    "config.lock",
)


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, hostile.Candidates]:
    """One lab; tests get copies. The rejected candidate can be promoted: it was made on today's baseline."""
    folder = tmp_path_factory.mktemp("pattern") / "lab"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        return folder, hostile.make(folder)


@pytest.fixture
def lab(pattern: tuple[Path, hostile.Candidates], tmp_path: Path) -> Path:
    """A copy of the lab."""
    return hostile.copy(pattern[0], tmp_path / "lab")


def _state(lab: Path) -> tuple[str, dict[str, bytes]]:
    refs = subprocess.run(["git", "for-each-ref"], cwd=lab, capture_output=True, text=True, check=True).stdout
    files = {str(path.relative_to(lab)): path.read_bytes() for path in sorted(lab.rglob("*"))
             if path.is_file() and ".git" not in path.relative_to(lab).parts}  # fmt: skip
    return refs, files


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_that_was_left(lock: str, act: str, lab: Path, pattern: tuple[Path, hostile.Candidates]) -> None:
    repo = LabRepo.open(lab)
    before = _state(lab)
    (lab / ".git" / lock).touch()
    try:
        ACTS[act](repo, pattern[1])
    except StoreError as error:
        assert error.cause == "locked" and "File exists" in str(error) and str(lab / ".git" / lock) in str(error)
        assert "delete that file" in str(error)
        assert _state(lab) == before, "nothing has moved"
        assert LabRepo.open(lab).candidates().total == repo.candidates().total and repo.dirty() == []
        (lab / ".git" / lock).unlink()
        ACTS[act](repo, pattern[1])
    else:
        assert lock not in ("index.lock", "HEAD.lock") or act in ("reject", "undo", "retry", "propose")
        (lab / ".git" / lock).unlink()
    assert repo.dirty() == []
    status = subprocess.run(["git", "status", "--porcelain"], cwd=lab, capture_output=True, text=True, check=True)
    assert status.stdout == ""


def test_our_own_lock_is_cleared_after_a_kill(lab: Path, pattern: tuple[Path, hostile.Candidates]) -> None:
    (lab / ".git" / "index.lock").write_bytes(_MARK)
    LabRepo.open(lab)
    assert not (lab / ".git" / "index.lock").exists(), "plain git can work again"
    (lab / ".git" / "index.lock").write_bytes(_MARK)
    (lab / ".git" / "harnesslab").mkdir(exist_ok=True)
    (lab / ".git" / "harnesslab" / "index.next.lock").touch()
    repo = LabRepo.open(lab)
    Ledger(repo).promote(pattern[1].fitting, {})
    assert repo.dirty() == [] and not (lab / ".git" / "index.lock").exists()


@pytest.mark.parametrize("loose", [True, False])
@pytest.mark.parametrize(
    "name", ["refs/harnesslab/rejected", "refs/harnesslab", "refs/notes/harnesslab/x", "refs/harnesslab/rejected/ID/x"]
)
def test_a_ref_in_the_way(name: str, loose: bool, lab: Path, pattern: tuple[Path, hostile.Candidates]) -> None:
    repo = LabRepo.open(lab)
    ref = name.replace("ID", pattern[1].fitting)
    shutil.rmtree(lab / ".git" / "refs" / "harnesslab" / "rejected")
    if name == "refs/harnesslab":
        shutil.rmtree(lab / ".git" / "refs" / "harnesslab")
    if name.startswith("refs/notes"):
        (lab / ".git" / "refs" / "notes" / "harnesslab").unlink()
        shutil.rmtree(lab / ".git" / "logs", ignore_errors=True)
    subprocess.run(["git", "update-ref", ref, "HEAD"], cwd=lab, check=True)
    if not loose:
        subprocess.run(["git", "pack-refs", "--all"], cwd=lab, check=True)
    before = _state(lab)
    with pytest.raises(StoreError) as refused:
        if name == "refs/harnesslab":
            repo.propose({"a.yaml": "1"}, "one")
        else:
            Ledger(repo).reject(pattern[1].fitting, {})
    assert ref in str(refused.value) and "git update-ref -d" in str(refused.value)
    assert _state(lab) == before
    subprocess.run(["git", "update-ref", "-d", ref], cwd=lab, check=True)
    repo.propose({"a.yaml": "1"}, "one")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Makes a folder read-only, for root too; skips where that is not allowed."""
    mounted: list[Path] = []

    def mount(folder: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        done = subprocess.run(["mount", "--bind", str(folder), str(folder)], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("this machine does not let us mount a file system")
        mounted.append(folder)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@pytest.mark.parametrize("place", ["skill", ".git", ".git/objects", ".git/refs"])
@pytest.mark.parametrize("act", ["accept", "roll back"])
def test_a_folder_without_write_access(
    place: str, act: str, lab: Path, pattern: tuple[Path, hostile.Candidates], read_only: Callable[[Path], None]
) -> None:
    repo = LabRepo.open(lab)
    before = _state(lab)
    read_only(lab / place)
    with pytest.raises(StoreError, match=r"read-only|writable|cannot be (written|locked)"):
        ACTS[act](repo, pattern[1])
    assert _state(lab) == before
    subprocess.run(["umount", "-l", str(lab / place)], check=True)
    ACTS[act](repo, pattern[1])
    assert repo.dirty() == []


@pytest.mark.parametrize("entry", [
    "100644 blob {blob}\t..", "100644 blob {blob}\t.git", "100644 blob {blob}\t.GIT", "100644 blob {blob}\tgit~1", "100644 blob {blob}\t.g\u200cit",
    "120000 blob {blob}\tlink", "160000 commit {commit}\tsub", "100644 blob {blob}\ta\\b", "100644 blob {blob}\ta\x1b[2J",
    "100644 blob {blob}\t" + "x" * 300, "100644 blob {blob}\ta:b", "100644 blob {blob}\tCON.yaml",
    "040000 tree {tree}\t..", "040000 tree {tree}\t.git", "040000 tree {tree}\t.harnesslab",
])  # fmt: skip
def test_a_tree_that_no_checkout_can_hold(entry: str, lab: Path, pattern: tuple[Path, hostile.Candidates]) -> None:
    repo = LabRepo.open(lab)
    before = repo.baseline()
    candidate = repo.propose({"a.yaml": "1"}, "one")

    def git(*args: str, data: bytes | None = None) -> str:
        options = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x",
            "-c",
            "core.protectNTFS=false",
            "-c",
            "core.protectHFS=false",
        ]
        done = subprocess.run(["git", *options, *args], cwd=lab, input=data, capture_output=True, check=True)
        return done.stdout.decode().strip()

    tree = git("rev-parse", "HEAD:skill")
    blob, listing = git("rev-parse", "HEAD:harness.toml"), git("ls-tree", "HEAD")
    head, _, name = entry.format(blob=blob, tree=tree, commit=before).partition("\t")
    # `git mktree` refuses some of these names; a tree object is easily written without it.
    raw = b"".join(
        f"{mode.lstrip('0')} {file}".encode() + b"\0" + bytes.fromhex(object_id)
        for mode, _, object_id, file in sorted(
            [
                (*head.split(" "), name),
                *((*line.partition("\t")[0].split(" "), line.partition("\t")[2]) for line in listing.split("\n")),
            ],
            key=lambda fields: fields[3] + ("/" if fields[1] == "tree" else ""),
        )
    )
    odd = git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", data=raw)
    commit = git("commit-tree", odd, "-p", before, "-m", "odd")
    git("update-ref", candidate.ref, commit)
    state = _state(lab)
    with pytest.raises(StoreError, match=r"cannot be a file of a harness|plain files only"):
        Ledger(repo).promote(candidate.id, {})
    assert _state(lab) == state
    Ledger(repo).reject(candidate.id, {})
    repo.diff(before, commit)
    if not head.startswith(("12", "16")) and "x" * 300 not in name and name not in ("a:b", "CON.yaml", ".harnesslab"):
        with pytest.raises(StoreError, match="cannot be part of a harness"):
            repo.files(commit)
