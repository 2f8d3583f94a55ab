"""Edited files are compared and taken up as git would store them, and nothing in the repository changes by looking."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.errors import StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo

Run = Callable[..., str]

CONVERSIONS = {
    "autocrlf=true": (["core.autocrlf", "true"], ""),
    "autocrlf=input": (["core.autocrlf", "input"], ""),
    "eol=crlf": ([], "*.yaml text eol=crlf\n"),
    "text, core.eol": (["core.eol", "crlf"], "* text\n"),
    "text=auto": (["core.eol", "crlf"], "* text=auto\n"),
    "legacy crlf": (["core.eol", "crlf"], "*.yaml crlf\n"),
    "none": ([], ""),
}
NEW = "kind: prompt\nparams:\n  text: ü\n"


@pytest.fixture(params=CONVERSIONS, ids=str)
def converting(request: pytest.FixtureRequest, repo: LabRepo, git: Run) -> LabRepo:
    """A lab that converts line ends in one of git's ways."""
    config, attributes = CONVERSIONS[request.param]
    if config:
        git("config", *config)
    if attributes:
        Ledger(repo).promote(repo.propose({".gitattributes": attributes}, "line ends").id, {})
    return repo


def save(path: Path, text: str, end: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.replace("\n", end).encode())


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_file_saved_with_other_line_ends_is_no_edit_and_follows(
    converting: LabRepo, end: str, git: Run, request: pytest.FixtureRequest
) -> None:
    before = converting.baseline()
    Ledger(converting).promote(converting.propose({"skill/new.yaml": NEW, "skill/plan.yaml": NEW}, "new").id, {})
    for name in ("skill/new.yaml", "skill/plan.yaml"):
        save(converting.path / name, NEW, end)
    if end == "\r\n" and "none" in request.node.name:  # without conversions it is another content
        assert converting.dirty() == ["skill/new.yaml", "skill/plan.yaml"]
        return
    assert converting.dirty() == [] and converting.edits().changes == {}
    decision = Ledger(converting).rollback(before, "me", "again")
    assert decision.left == () and not (converting.path / "skill" / "new.yaml").exists()
    assert converting.dirty() == [] and git("status", "--porcelain") == ""


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_an_edit_has_the_content_that_git_would_store(converting: LabRepo, end: str, git: Run) -> None:
    save(converting.path / "skill" / "plan.yaml", NEW, end)
    save(converting.path / "skill" / "new.yaml", NEW, end)
    (converting.path / "harness.toml").unlink()
    found = converting.edits()
    assert found.left_out == {} and set(found.changes) == {"skill/plan.yaml", "skill/new.yaml", "harness.toml"}
    git("add", "-A")
    for name, content in found.changes.items():
        stored = git("ls-files", "-s", name)
        assert (content is None) == (stored == "")
        if content is not None:
            blob = subprocess.run(
                ["git", "cat-file", "blob", stored.split()[1]], cwd=converting.path, capture_output=True, check=True
            )
            assert content == blob.stdout


def test_what_is_proposed_from_an_edit_is_adopted_without_a_remainder(converting: LabRepo, git: Run) -> None:
    save(converting.path / "skill" / "plan.yaml", NEW, "\n")
    save(converting.path / "skill" / "new.yaml", NEW, "\n")
    candidate = converting.propose(converting.edits().changes, "by hand")
    assert Ledger(converting).promote(candidate.id, {}).left == ()
    assert converting.dirty() == [] and git("status", "--porcelain") == ""


def test_another_encoding_on_disk(repo: LabRepo) -> None:
    Ledger(repo).promote(repo.propose({".gitattributes": "*.yaml working-tree-encoding=UTF-16\n"}, "encoding").id, {})
    Ledger(repo).promote(repo.propose({"skill/new.yaml": NEW}, "new").id, {})
    assert (repo.path / "skill" / "new.yaml").read_bytes() == NEW.encode("utf-16")
    (repo.path / "skill" / "new.yaml").write_bytes((NEW + "more: 1\n").encode("utf-16"))
    assert repo.edits(lambda path: path.endswith("new.yaml")).changes == {
        "skill/new.yaml": (NEW + "more: 1\n").encode()
    }


@pytest.mark.parametrize("how", ["copied", "touched", "with a split index"])
def test_files_that_were_only_copied_or_touched_are_no_edits_and_follow(
    how: str, repo: LabRepo, tmp_path: Path
) -> None:
    candidate = repo.propose({"skill/plan.yaml": NEW, "skill/new.yaml": NEW}, "new")
    if how == "with a split index":
        subprocess.run(["git", "update-index", "--split-index"], cwd=repo.path, check=True)
    lab = shutil.copytree(repo.path, tmp_path / "copy", copy_function=shutil.copyfile) if how == "copied" else repo.path
    for name in ("harness.toml", "skill/plan.yaml"):
        os.utime(lab / name, (1, 1))
    before = sorted((lab / ".git").glob("*"))
    with contextlib.closing(LabRepo.open(lab)) as copy:
        assert copy.dirty() == [] and copy.edits().changes == {}
        assert sorted((lab / ".git").glob("*")) == before
        assert Ledger(copy).promote(candidate.id, {}).left == ()
        assert copy.dirty() == [] and (lab / "skill" / "plan.yaml").read_text("utf-8") == NEW


def test_looking_leaves_the_repository_as_it_is(repo: LabRepo, git: Run) -> None:
    save(repo.path / "skill" / "plan.yaml", NEW, "\n")
    git("add", "skill/plan.yaml")
    save(repo.path / "skill" / "new.yaml", NEW, "\n")

    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted(repo.git_dir.rglob("*")) if p.is_file()}

    before = state()
    assert len(repo.edits().changes) == 2
    assert state() == before


def test_staged_deleted_and_untracked_files(repo: LabRepo, git: Run) -> None:
    save(repo.path / "skill" / "staged.yaml", NEW, "\n")
    git("add", "skill/staged.yaml")
    (repo.path / "skill" / "staged.yaml").unlink()  # staged, and gone again: no change
    git("rm", "-q", "--cached", "skill/plan.yaml")  # only the index lost it
    save(repo.path / "sub" / "ü b.yaml", NEW, "\n")
    assert repo.edits().changes == {"sub/ü b.yaml": NEW.encode()}


def test_files_that_are_not_plain_are_left_out_with_a_reason(repo: LabRepo, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key", "utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.yaml").write_text(NEW, "utf-8")
    (repo.path / "skill" / "link.yaml").symlink_to(tmp_path / "secret")
    (repo.path / "action").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (repo.path / "skill" / "big.yaml").write_bytes(b"x" * 2000)
    os.mkfifo(repo.path / "skill" / "pipe.yaml")
    found = repo.edits(max_bytes=1000)
    assert found.changes == {}
    assert found.left_out["skill/link.yaml"] == found.left_out["action"] == "not a plain file"
    assert "2000 bytes" in found.left_out["skill/big.yaml"]


def test_a_link_in_the_place_of_a_tracked_folder_is_not_read_through(repo: LabRepo, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "plan.yaml").write_text("key: secret\n", "utf-8")
    (repo.path / "skill" / "plan.yaml").unlink()
    (repo.path / "skill").rmdir()
    (repo.path / "skill").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    changes = repo.edits(lambda path: path.endswith(".yaml")).changes
    assert all(b"secret" not in (content or b"") for content in changes.values())


def test_edits_are_against_the_commit_that_is_checked_out(repo: LabRepo, git: Run) -> None:
    start = repo.baseline()
    Ledger(repo).promote(repo.propose({"skill/new.yaml": NEW}, "new").id, {})
    for place in (("checkout", "-q", "--detach", start), ("checkout", "-q", "-b", "mine", start)):
        git(*place)
        assert repo.dirty() == [] and repo.edits().changes == {}
        save(repo.path / "skill" / "plan.yaml", NEW, "\n")
        assert repo.edits().changes == {"skill/plan.yaml": NEW.encode()}
        git("checkout", "-q", "--", ".")
    git("checkout", "-q", "--orphan", "empty")
    assert repo.dirty() == [] and repo.edits().changes == {} and repo.checked_out() is None


def test_files_left_out_of_a_sparse_checkout_are_no_deletions(repo: LabRepo, git: Run) -> None:
    git("update-index", "--skip-worktree", "skill/plan.yaml")
    (repo.path / "skill" / "plan.yaml").unlink()
    assert repo.edits().changes == {}


@settings(max_examples=15, deadline=None)
@given(
    text=st.text(st.sampled_from("ab ü\n\r\t\0"), max_size=40),
    value=st.sampled_from(["true", "input", "false"]),
    attribute=st.sampled_from(
        ["", "* text", "* text=auto", "* -text", "* eol=lf", "* eol=crlf", "* text=auto eol=crlf"]
    ),
)
def test_any_content_is_taken_up_as_git_add_does(
    text: str, value: str, attribute: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    repo = LabRepo.create(tmp_path_factory.mktemp("lab") / "lab", {"a": "1\r\n", "b": "2\n"})
    command = ["git", "-c", "core.safecrlf=false"]
    subprocess.run(["git", "config", "core.autocrlf", value], cwd=repo.path, check=True)
    (repo.path / ".gitattributes").write_text(attribute + "\n", "utf-8")
    for name in ("a", "b", "c"):
        (repo.path / name).write_bytes(text.encode())
    changes = repo.edits().changes
    subprocess.run([*command, "add", "-A"], cwd=repo.path, check=True, capture_output=True)
    for name in ("a", "b", "c"):
        blob = subprocess.run(["git", "cat-file", "blob", f":{name}"], cwd=repo.path, capture_output=True, check=True)
        before = {"a": b"1\r\n", "b": b"2\n"}.get(name)
        assert changes.get(name, before) == blob.stdout
    repo.close()


def test_a_strict_check_of_line_ends_is_no_obstacle(repo: LabRepo, git: Run) -> None:
    git("config", "core.autocrlf", "true")
    git("config", "core.safecrlf", "true")
    before = repo.baseline()
    save(repo.path / "skill" / "new.yaml", NEW, "\n")
    changes = repo.edits().changes
    assert changes == {"skill/new.yaml": NEW.encode()}
    assert Ledger(repo).promote(repo.propose(changes, "new").id, {}).left == ()
    assert Ledger(repo).rollback(before).left == () and repo.dirty() == []


def test_a_file_that_git_cannot_convert_is_left_out_and_ends_nothing(repo: LabRepo) -> None:
    Ledger(repo).promote(repo.propose({".gitattributes": "*.yaml working-tree-encoding=UTF-16\n"}, "encoding").id, {})
    save(repo.path / "skill" / "new.yaml", NEW, "\n")
    (repo.path / "harness.toml").write_text("name = 'mine'\n", "utf-8")
    found = repo.edits()
    assert found.changes.keys() == {"harness.toml"} and "UTF-16" in found.left_out["skill/new.yaml"]
    candidate = repo.propose({"skill/new.yaml": NEW, "skill/more.yaml": NEW}, "the same")
    assert Ledger(repo).promote(candidate.id, {}).left == ("skill/new.yaml",)
    assert (repo.path / "skill" / "new.yaml").read_bytes() == NEW.encode()
    assert repo.propose({"skill/other.yaml": NEW}, "later acts go on").id


@pytest.mark.parametrize("how", ["merge", "cherry-pick", "rebase"])
def test_files_in_conflict_are_no_edits_and_nothing_moves_meanwhile(how: str, repo: LabRepo, git: Run) -> None:
    git("checkout", "-q", "-b", "other")
    save(repo.path / "skill" / "plan.yaml", "other\n", "\n")
    git("commit", "-q", "-am", "other")
    git("checkout", "-q", "main")
    save(repo.path / "skill" / "plan.yaml", "main\n", "\n")
    git("commit", "-q", "-am", "main")
    candidate = repo.propose({"harness.toml": "name = 'new'\n"}, "new")
    git(how, "other", check=False)
    assert git("ls-files", "-u") != ""
    found = repo.edits()
    assert found.changes == {} and "in conflict" in found.left_out["skill/plan.yaml"]
    if how == "rebase":  # HEAD is detached, so the checkout does not follow
        assert Ledger(repo).promote(candidate.id, {}).left == ()
        return
    before = git("for-each-ref"), git("status", "--porcelain")
    with pytest.raises(StoreError, match=r"not finished \(skill/plan.yaml in conflict\).*merge --abort"):
        Ledger(repo).promote(candidate.id, {})
    assert (git("for-each-ref"), git("status", "--porcelain")) == before
    git("reset", "-q", "--merge")
    assert Ledger(repo).promote(candidate.id, {}).left == ()
