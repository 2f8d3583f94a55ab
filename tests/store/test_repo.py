"""A lab's repository: creating, proposing, reading, and everything that a checkout can look like."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harnesslab.errors import BaselineMoved, StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo, RetryConflict

Run = Callable[..., str]


def test_create_gives_a_clean_checkout_with_a_stated_identity(repo: LabRepo, git: Run) -> None:
    assert repo.dirty() == [] and repo.head() == "refs/heads/main"
    assert git("log", "--format=%an <%ae>") == "harnesslab <harnesslab@localhost>"
    assert (repo.path / "skill/plan.yaml").read_text() == "text: one\ntext2: two\ntext3: three\n"
    assert repo.files(repo.baseline())["harness.toml"] == b"name = 'test'\n"


def test_a_configured_identity_is_used(repo: LabRepo, git: Run) -> None:
    git("config", "user.name", "Änne")
    git("config", "user.email", "a@example.org")
    candidate = LabRepo.open(repo.path).propose({"a.yaml": "a"}, "try")
    assert git("log", "-1", "--format=%an", candidate.commit) == "Änne"


def test_records_are_ignored_without_a_gitignore(repo: LabRepo, git: Run) -> None:
    (repo.path / ".harnesslab").mkdir()
    (repo.path / ".harnesslab/lab.db").write_text("x")
    assert git("status", "--porcelain") == "" and repo.dirty() == []


def test_create_refuses_what_is_there(repo: LabRepo, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="open it instead"):
        LabRepo.create(repo.path, {"a": "b"})
    other = tmp_path / "other"
    other.mkdir()
    (other / "harness.toml").write_text("mine")
    with pytest.raises(StoreError, match="other content"):
        LabRepo.create(other, {"harness.toml": "yours"})
    assert (other / "harness.toml").read_text() == "mine" and not (other / ".git").exists()


def test_a_lab_inside_another_repository_leaves_the_outer_one_alone(tmp_path: Path) -> None:
    outer = LabRepo.create(tmp_path / "outer", {"readme": "outer"})
    before = outer.baseline()
    inner_path = outer.path / "labs/kitchen"
    inner_path.mkdir(parents=True)
    with pytest.raises(StoreError, match="no git repository of its own"):
        LabRepo.open(inner_path)
    inner = LabRepo.create(inner_path, {"harness.toml": "x"})
    candidate = inner.propose({"a.yaml": "a"}, "try")
    Ledger(inner).promote(candidate.id, {})
    assert outer.baseline() == before and outer.candidates().total == 0
    assert LabRepo.open(inner_path).baseline() == candidate.commit


def test_surrounding_git_variables_do_not_divert_writes(
    repo: LabRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = LabRepo.create(tmp_path / "other", {"a": "b"})
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git/index"))
    Ledger(repo).promote(repo.propose({"n.yaml": "n"}, "n").id, {})
    monkeypatch.undo()
    assert other.candidates().total == 0 and (repo.path / "n.yaml").exists()


def test_propose_is_a_child_commit_that_touches_nothing(repo: LabRepo, git: Run) -> None:
    (repo.path / "skill/plan.yaml").write_text("mine\n")
    git("add", "skill/plan.yaml")
    (repo.path / "skill/plan.yaml").write_text("mine, later\n")
    status = git("status", "--porcelain")
    meta = {"layer": "skill", "prediction": {"flips": ["t1"]}, "text": "Größe\n"}
    candidate = repo.propose({"skill/new ä.yaml": "ü", "harness.toml": None}, "Teach\n\nWhy it should help.", meta)
    assert git("status", "--porcelain") == status
    assert git("show", ":skill/plan.yaml") == "mine"
    assert candidate.parent == repo.baseline() and candidate.state == "pending" and candidate.subject == "Teach"
    assert repo.candidate(candidate.id).meta == meta == dict(candidate.meta)
    assert set(repo.files(candidate.commit)) == {"skill/plan.yaml", "skill/new ä.yaml"}
    assert git("rev-parse", candidate.ref) == candidate.commit


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", ".git/config", "a/.GIT/x", "a//b", "a\\b", "", "a\nb", ".harnesslab/x", "a/./b", "git~1/x"],
)
def test_a_path_that_leaves_the_lab_is_refused(repo: LabRepo, path: str) -> None:
    with pytest.raises(StoreError, match="cannot be a file of a harness"):
        repo.propose({path: "x"}, "try")
    assert repo.candidates().total == 0


def test_an_empty_or_void_change_is_refused(repo: LabRepo) -> None:
    with pytest.raises(StoreError, match="at least one"):
        repo.propose({}, "nothing")
    with pytest.raises(StoreError, match="nothing to propose"):
        repo.propose({"harness.toml": "name = 'test'\n"}, "same")
    with pytest.raises(StoreError, match="JSON"):
        repo.propose({"a": "b"}, "nan", {"x": float("nan")})


def test_a_message_cannot_forge_meta_data(repo: LabRepo) -> None:
    candidate = repo.propose({"a": "b"}, 'x\n\nHarnesslab-Meta: {"layer":"forged"}', {"layer": "true"})
    assert repo.candidate(candidate.id).layer == "true"


@pytest.mark.parametrize(
    "name",
    [
        "--help",
        "-x",
        "main",
        "refs/heads/../x",
        "refs/heads/a b",
        "HEAD~1",
        "refs/heads/main^",
        "refs/x.lock",
        "zzz",
        "abc",
    ],
)
def test_only_full_ref_names_and_ids_resolve(repo: LabRepo, name: str) -> None:
    with pytest.raises(StoreError):
        repo.resolve(name)


def test_resolve(repo: LabRepo) -> None:
    baseline = repo.baseline()
    assert {repo.resolve(name) for name in ("HEAD", "refs/heads/main", baseline, baseline[:8])} == {baseline}
    with pytest.raises(StoreError, match="no commit"):
        repo.resolve("refs/heads/none")


def test_promote_brings_a_clean_checkout_along(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose(
        {"skill/plan.yaml": "text: new\n", "action/a ö.yaml": "a", "harness.toml": None}, "all kinds"
    )
    decision = Ledger(repo).promote(candidate.id, {"reason": "better"})
    assert decision.left == () and decision.baseline == candidate.commit == repo.baseline()
    assert git("status", "--porcelain") == "" and repo.dirty() == []
    assert (repo.path / "action/a ö.yaml").read_text() == "a" and not (repo.path / "harness.toml").exists()


def test_promote_leaves_a_dirty_file_and_says_so(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"skill/plan.yaml": "text: theirs\n", "b.yaml": "b", "c.yaml": "c"}, "b")
    (repo.path / "skill/plan.yaml").write_text("text: mine\n")
    (repo.path / "c.yaml").write_text("also mine")
    decision = Ledger(repo).promote(candidate.id, {})
    assert decision.left == ("c.yaml", "skill/plan.yaml")
    assert (repo.path / "skill/plan.yaml").read_text() == "text: mine\n"
    assert (repo.path / "c.yaml").read_text() == "also mine"
    assert (repo.path / "b.yaml").read_text() == "b"
    assert repo.dirty() == ["c.yaml", "skill/plan.yaml"]


def test_promote_keeps_what_is_staged(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"skill/plan.yaml": "text: theirs\n"}, "b")
    (repo.path / "skill/plan.yaml").write_text("text: staged\n")
    git("add", ".")
    assert Ledger(repo).promote(candidate.id, {}).left == ("skill/plan.yaml",)
    assert git("show", ":skill/plan.yaml") == "text: staged"


def test_a_dirty_checkout_can_become_a_candidate_and_is_clean_after_promotion(repo: LabRepo, git: Run) -> None:
    (repo.path / "skill/plan.yaml").write_text("text: by hand\n")
    (repo.path / "new.yaml").write_text("n")
    (repo.path / "harness.toml").unlink()
    assert repo.dirty() == ["harness.toml", "new.yaml", "skill/plan.yaml"]
    candidate = repo.propose(repo.edits().changes, "by hand")
    assert Ledger(repo).promote(candidate.id, {}).left == ()
    assert repo.dirty() == [] and git("status", "--porcelain") == ""


def test_a_touched_file_is_not_dirty(repo: LabRepo) -> None:
    os.utime(repo.path / "harness.toml", (1, 1))
    assert repo.dirty() == []
    assert Ledger(repo).promote(repo.propose({"harness.toml": "x"}, "x").id, {}).left == ()


def test_detached_head_and_other_branch_are_not_moved(repo: LabRepo, git: Run) -> None:
    git("checkout", "--detach", "-q")
    first = repo.baseline()
    assert repo.head() is None
    Ledger(repo).promote(repo.propose({"a": "1"}, "a").id, {})
    assert git("rev-parse", "HEAD") == first and not (repo.path / "a").exists()
    git("checkout", "-q", "-b", "mine")
    assert repo.head() == "refs/heads/mine"
    Ledger(repo).promote(repo.propose({"a": "2"}, "a").id, {})
    assert git("rev-parse", "HEAD") == first and git("status", "--porcelain") == ""


def test_promote_after_the_baseline_moved(repo: LabRepo, git: Run) -> None:
    one, two = repo.propose({"a": "1"}, "one"), repo.propose({"b": "2"}, "two")
    Ledger(repo).promote(one.id, {})
    with pytest.raises(BaselineMoved, match="retry"):
        Ledger(repo).promote(two.id, {})
    again = Ledger(repo).retry(two.id)
    assert again.meta["retry_of"] == two.id and again.parent == one.commit
    Ledger(repo).promote(again.id, {})
    assert {"a", "b"} <= set(repo.files(repo.baseline()))


def test_a_commit_by_hand_is_a_moved_baseline_too(repo: LabRepo, git: Run) -> None:
    candidate = repo.propose({"a": "1"}, "one")
    git("commit", "-q", "--allow-empty", "-m", "by hand")
    with pytest.raises(BaselineMoved):
        Ledger(repo).promote(candidate.id, {})
    assert repo.candidate(candidate.id).state == "pending"
    assert [entry.subject for entry in repo.history()] == ["by hand", "Start the lab"]


def test_retry_shows_a_conflict(repo: LabRepo) -> None:
    one = repo.propose({"skill/plan.yaml": "text: A\ntext2: two\ntext3: three\n"}, "one")
    two = repo.propose({"skill/plan.yaml": "text: B\ntext2: two\ntext3: three\n"}, "two")
    Ledger(repo).reject(two.id, {"reason": "worse"})
    Ledger(repo).promote(one.id, {})
    with pytest.raises(RetryConflict, match=r"skill/plan\.yaml") as caught:
        Ledger(repo).retry(two.id)
    assert caught.value.paths == ("skill/plan.yaml",)
    assert "text: A" in caught.value.texts["skill/plan.yaml"] and "text: B" in caught.value.texts["skill/plan.yaml"]
    assert repo.counts() == {"promoted": 1, "rejected": 1}
    with pytest.raises(StoreError, match="already"):
        Ledger(repo).retry(one.id)


def test_retry_merges_different_places_of_one_file(repo: LabRepo) -> None:
    lines = [f"line{n}: {n}" for n in range(20)]
    Ledger(repo).promote(repo.propose({"x.yaml": "\n".join(lines) + "\n"}, "x").id, {})
    top = repo.propose({"x.yaml": "\n".join(["top", *lines[1:]]) + "\n"}, "top")
    end = repo.propose({"x.yaml": "\n".join([*lines[:-1], "end"]) + "\n"}, "end")
    Ledger(repo).reject(end.id, {})
    Ledger(repo).promote(top.id, {})
    merged = repo.files(Ledger(repo).retry(end.id).commit)["x.yaml"].decode()
    assert merged.startswith("top\n") and merged.endswith("end\n")


def test_rollback_is_a_new_commit_and_loses_nothing(repo: LabRepo) -> None:
    first = repo.baseline()
    one = repo.propose({"a": "1"}, "one")
    Ledger(repo).promote(one.id, {})
    decision = Ledger(repo).rollback(first, "me", "it was better")
    assert repo.baseline() == decision.commit and repo.files(decision.commit) == repo.files(first)
    assert not (repo.path / "a").exists() and repo.dirty() == []
    entries = repo.history()
    assert [entry.commit for entry in entries] == [decision.commit, one.commit, first]
    assert entries[0].rollback_to == first and entries[1].candidate is not None and entries[1].candidate.id == one.id
    assert repo.candidate(one.id).state == "promoted"
    with pytest.raises(StoreError, match="already"):
        Ledger(repo).rollback(first)
    with pytest.raises(StoreError, match="history"):
        Ledger(repo).rollback(repo.propose({"z": "z"}, "z").commit)


def test_diff(repo: LabRepo) -> None:
    candidate = repo.propose({"skill/plan.yaml": "text: ü\n", "big": "x" * 300_000, "bin": b"\0\1"}, "d")
    diff = repo.diff("refs/heads/main", candidate.ref)
    files = {file.path: file for file in diff.files}
    assert files["skill/plan.yaml"].after == "text: ü\n" and files["skill/plan.yaml"].status == "M"
    assert files["bin"].note == "binary" and files["big"].note.startswith("too large") and files["big"].after is None
    assert "+text: ü" in diff.text and not diff.truncated


def test_hooks_and_monitors_do_not_run(repo: LabRepo, git: Run, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    hooks = repo.git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-checkout", "post-index-change", "pre-commit", "monitor"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{marker}'\n")
        (hooks / name).chmod(0o755)
    with (repo.git_dir / "config").open("a") as file:
        file.write(f'[core]\n\tfsmonitor = "{hooks}/monitor"\n')
    Ledger(repo).promote(repo.propose({"a": "1"}, "one").id, {})
    repo.dirty()
    repo.candidates()
    assert not marker.exists()


def test_a_linked_worktree_shares_the_lab(repo: LabRepo, git: Run, tmp_path: Path) -> None:
    git("worktree", "add", "-q", "--detach", str(tmp_path / "second"))
    second = LabRepo.open(tmp_path / "second")
    candidate = second.propose({"a": "1"}, "one")
    assert repo.candidate(candidate.id).commit == candidate.commit and second.git_dir == repo.git_dir


def test_an_emptied_or_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no folder"):
        LabRepo.open(tmp_path / "none")
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path / "trunk")], check=True)
    with pytest.raises(StoreError, match="no branch 'main'"):
        LabRepo.open(tmp_path / "trunk")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    with pytest.raises(StoreError, match="own"):
        LabRepo.open(tmp_path / "bare")


def test_a_candidate_of_several_commits_is_promoted_and_undone_as_one(tmp_path: Path) -> None:
    repo = LabRepo.create(tmp_path / "lab", {"harness.toml": 'name = "x"\n'})
    start = repo.baseline()
    steps = [({"a.txt": "a"}, "Add a"), ({"b.txt": "b"}, "Add b"), ({"c.txt": "c"}, "Add c")]
    candidate = repo.propose({"a.txt": "a", "b.txt": "b", "c.txt": "c"}, "Add c", {}, steps)
    assert candidate.parent == start and repo.candidate(candidate.id) == candidate
    repo.settle(candidate.id, "promoted", {"state": "promoted"})
    assert [entry.subject for entry in repo.history()] == ["Add c", "Add b", "Add a", "Start the lab"]
    repo.settle(candidate.id, "pending", {"state": "pending"})
    assert repo.baseline() == start
    repo.propose({"d.txt": "d"}, "Add d")
    again = repo.reapply(candidate.id)
    assert again.parent == start and set(repo.files(again.commit)) >= {"a.txt", "b.txt", "c.txt"}


def test_a_candidate_whose_base_is_not_in_its_history_is_not_promoted(tmp_path: Path) -> None:
    repo = LabRepo.create(tmp_path / "lab", {"harness.toml": 'name = "x"\n'})
    first = repo.propose({"a.txt": "a"}, "Add a")
    repo.settle(first.id, "promoted", {"state": "promoted"})
    head = repo.baseline()
    forged = repo.propose({"a.txt": None, "b.txt": "b"}, "Forged", {"base": head})
    assert forged.parent == head, "a true base is fine"
    git = repo._git
    start = repo.root()
    tree = git.text("rev-parse", f"{start}^{{tree}}")
    from harnesslab.store.objects import write_commit

    lost = write_commit(git, tree, (start,), "Lose a", {"base": head})
    git.run("update-ref", "refs/harnesslab/candidates/0123456789ab", lost, write=True)
    with pytest.raises(StoreError, match="does not come after"):
        repo.settle("0123456789ab", "promoted", {"state": "promoted"})
    assert repo.baseline() == head
