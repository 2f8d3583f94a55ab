"""Which folders are labs. Everything else is refused with one sentence, and stays as it was, to the byte."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import StoreError
from tests.worlds import STARTER, CorridorWorld

MANIFEST = (STARTER / "harness.toml").read_text("utf-8")
Make = Callable[[Path], Path]


def git(folder: Path, *args: str) -> str:
    command = [
        "git",
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "-c",
        "protocol.file.allow=always",
        *args,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def commit(folder: Path, files: dict[str, str], branch: str = "main", message: str = "Mine") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", branch)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", message)
    return folder


def project(at: Path) -> Path:
    return commit(at / "my project ü", {"src/app.py": "print()\n", "README.md": "mine\n"})


def loose_files(at: Path) -> Path:
    (at / "papers").mkdir()
    (at / "papers" / "thesis.txt").write_text("years of work", "utf-8")
    return at / "papers"


def a_file(at: Path) -> Path:
    (at / "notes.txt").write_text("mine", "utf-8")
    return at / "notes.txt"


def below_a_file(at: Path) -> Path:
    return a_file(at) / "lab"


def bare(at: Path) -> Path:
    git(project(at), "clone", "-q", "--bare", ".", str(at / "bare.git"))
    return at / "bare.git"


def bare_lab(at: Path) -> Path:
    hl.Lab.open(at / "lab", env=CorridorWorld()).close()
    git(at, "clone", "-q", "--bare", "lab", "bare")
    return at / "bare"


def worktree(at: Path) -> Path:
    git(project(at), "worktree", "add", "-q", str(at / "second"))
    return at / "second"


def submodule(at: Path) -> Path:
    outer = commit(at / "outer", {"a": "a"})
    git(outer, "submodule", "--quiet", "add", str(project(at)), "inner")
    return outer / "inner"


def subfolder(at: Path) -> Path:
    return project(at) / "src"


def subfolder_of_a_lab(at: Path) -> Path:
    hl.Lab.open(at / "lab", env=CorridorWorld()).close()
    (at / "lab" / "contract").mkdir()
    (at / "lab" / "contract" / "a.yaml").write_text("kind: prompt\n", "utf-8")
    return at / "lab" / "contract"


def git_folder(at: Path) -> Path:
    return project(at) / ".git"


def unborn(at: Path) -> Path:
    (at / "new").mkdir()
    git(at / "new", "init", "-q", "-b", "main")
    return at / "new"


def another_branch(at: Path) -> Path:
    return commit(at / "trunk", {"harness.toml": MANIFEST}, branch="trunk")


def uncommitted_manifest(at: Path) -> Path:
    (project(at) / "harness.toml").write_text(MANIFEST, "utf-8")
    return at / "my project ü"


def anothers_manifest(at: Path) -> Path:
    return commit(at / "ci", {"harness.toml": "[pipeline]\nname = 'deploy'\n", "main.tf": ""})


def link_to_a_project(at: Path) -> Path:
    (at / "lab").symlink_to(project(at), target_is_directory=True)
    return at / "lab"


def linked_git(at: Path) -> Path:
    (at / "two").mkdir()
    (at / "two" / ".git").symlink_to(project(at) / ".git", target_is_directory=True)
    return at / "two"


def loop_of_links(at: Path) -> Path:
    (at / "a").symlink_to(at / "b")
    (at / "b").symlink_to(at / "a")
    return at / "a"


def touched_by_an_older_version(at: Path) -> Path:
    folder = project(at)
    (folder / ".git" / "harnesslab").mkdir()
    (folder / ".harnesslab").mkdir()
    (folder / ".harnesslab" / "lab.json").write_text('{"environment": "kitchen"}', "utf-8")
    return folder


def long_name(at: Path) -> Path:
    return at / ("x" * 300)


def null_byte(at: Path) -> Path:
    return at / "a\0b"


EVERYTHING_ELSE: list[Make] = [
    project, loose_files, a_file, below_a_file, bare, bare_lab, worktree, submodule, subfolder, subfolder_of_a_lab,
    git_folder, unborn, another_branch, uncommitted_manifest, anothers_manifest, link_to_a_project, linked_git,
    loop_of_links, touched_by_an_older_version, long_name, null_byte,
]  # fmt: skip


def listing(folder: Path) -> dict[str, Any]:
    """Every file below a folder with its content, links as links."""
    found: dict[str, Any] = {}
    for base, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(base, name)
            found[str(path.relative_to(folder))] = (
                str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
            )
    return found


@pytest.mark.parametrize("fresh", [False, True], ids=["open", "fresh"])
@pytest.mark.parametrize("make", EVERYTHING_ELSE, ids=lambda make: make.__name__)
def test_what_is_not_a_lab_is_refused_and_untouched(make: Make, fresh: bool, tmp_path: Path) -> None:
    target = make(tmp_path)
    before = listing(tmp_path)
    with pytest.raises(StoreError) as refusal:
        hl.Lab.open(target, env=CorridorWorld(), fresh=fresh)
    assert listing(tmp_path) == before
    sentence = str(refusal.value)
    assert sentence.endswith(".") and "\n" not in sentence and sentence.count(". ") == 0, sentence


@pytest.mark.parametrize("fresh", [False, True], ids=["open", "fresh"])
@pytest.mark.parametrize("name", [".", "..", "/", "~", "~nobody-of-this-name"])
def test_places_that_are_no_labs(name: str, fresh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (home / "work" / "data.csv").write_text("1,2\n", "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    before = listing(tmp_path)
    with pytest.raises(StoreError, match=r"not a lab|usable path"):
        hl.Lab.open(name, env=CorridorWorld(), fresh=fresh)
    assert listing(tmp_path) == before


def test_an_empty_home_does_not_become_a_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StoreError, match="home"):
        hl.Lab.open("~", env=CorridorWorld())
    assert list(tmp_path.iterdir()) == []


def empty_folder(at: Path) -> Path:
    (at / "empty").mkdir()
    return at / "empty"


def missing_folders(at: Path) -> Path:
    return at / "läbs und mehr" / "küche"


def inside_a_project(at: Path) -> Path:
    return project(at) / "labs" / "kitchen"


@pytest.mark.parametrize("fresh", [False, True], ids=["open", "fresh"])
@pytest.mark.parametrize("make", [empty_folder, missing_folders, inside_a_project], ids=lambda make: make.__name__)
def test_a_lab_is_made_where_nothing_is(make: Make, fresh: bool, tmp_path: Path) -> None:
    lab = hl.Lab.open(make(tmp_path), env=CorridorWorld(), fresh=fresh)
    assert lab.repo.baseline() and [each.name for each in lab.path.parent.iterdir() if each.name[-1].isdigit()] == []
    lab.close()


def clone(at: Path) -> Path:
    git(at, "clone", "-q", "lab", "copy")
    return at / "copy"


def shallow(at: Path) -> Path:
    git(at, "clone", "-q", "--depth=1", f"file://{at}/lab", "copy")
    return at / "copy"


def copied(at: Path) -> Path:
    subprocess.run(["cp", "-a", str(at / "lab"), str(at / "copy")], check=True)
    return at / "copy"


def linked(at: Path) -> Path:
    (at / "link").symlink_to(at / "lab", target_is_directory=True)
    return at / "link"


@pytest.mark.parametrize("again", [clone, shallow, copied, linked], ids=lambda make: make.__name__)
def test_a_lab_is_known_again_and_moved_aside(again: Make, open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab = open_lab("lab")
    candidate = lab.repo.propose({"skill/a.yaml": "kind: prompt\nparams: {text: Go.}\n"}, "a", {"layer": "skill"})
    lab.ledger.promote(candidate.id, {})
    where = again(tmp_path)
    opened = open_lab(where)
    assert opened.repo.baseline() == candidate.commit
    opened.close()
    fresh = open_lab(where, fresh=True)
    assert fresh.repo.baseline() != candidate.commit
    aside = where.resolve().with_name(where.resolve().name + ".1")
    assert open_lab(aside).repo.baseline() == candidate.commit


def test_a_lab_made_by_the_first_version_still_opens(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    """Its first commit carries no mark, only the words."""
    old = commit(tmp_path / "old", {"harness.toml": MANIFEST}, message="Start the lab")
    assert open_lab("old").harness().name == "corridor"
    assert open_lab("old", fresh=True).path == old and (tmp_path / "old.1").is_dir()


def test_a_harness_in_a_repository_of_ones_own_opens_but_is_not_moved(
    open_lab: Callable[..., Any], tmp_path: Path
) -> None:
    own = commit(tmp_path / "own", {"harness.toml": MANIFEST, "notes.md": "mine"})
    assert open_lab("own").harness().name == "corridor"
    with pytest.raises(StoreError, match="not made by harnesslab"):
        open_lab("own", fresh=True)
    assert git(own, "status", "--porcelain") == "" and not (tmp_path / "own.1").exists()


@pytest.mark.parametrize("below", ["", "contract"])
def test_the_working_folder_is_not_moved(
    below: str, open_lab: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = open_lab("lab")
    (lab.path / below).mkdir(exist_ok=True)
    monkeypatch.chdir(lab.path / below)
    with pytest.raises(StoreError, match="working folder"):
        open_lab(lab.path, fresh=True)
    assert lab.path.is_dir() and not (tmp_path / "lab.1").exists()


def test_a_broken_link_in_the_way_is_not_replaced(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    open_lab("lab").close()
    (tmp_path / "lab.1").symlink_to(tmp_path / "gone")
    open_lab("lab", fresh=True)
    assert (tmp_path / "lab.1").is_symlink() and (tmp_path / "lab.2").is_dir()


def test_a_lab_whose_main_lost_its_manifest_can_be_rolled_back(open_lab: Callable[..., Any]) -> None:
    lab = open_lab("lab")
    start = lab.repo.baseline()
    git(lab.path, "rm", "-q", "harness.toml")
    git(lab.path, "commit", "-q", "--allow-empty", "-m", "oops")
    again = open_lab("lab")
    again.ledger.rollback(start, "me", "oops")
    assert again.harness().name == "corridor"


@pytest.mark.parametrize("lost", ["renamed", "deleted", "empty", "of a missing commit"])
def test_a_lab_that_lost_its_baseline_is_told_from_other_repositories(lost: str, tmp_path: Path) -> None:
    lab = hl.Lab.open(tmp_path / "lab", env=CorridorWorld())
    lab.repo.propose({"skill/a.yaml": "kind: procedure\nparams:\n  text: x\n"}, "x")
    lab.close()
    main = lab.path / ".git" / "refs" / "heads" / "main"
    if lost == "renamed":
        git(lab.path, "branch", "-m", "main", "trunk")
    elif lost == "deleted":
        main.unlink()
    else:
        main.write_text("" if lost == "empty" else "1" * 40 + "\n", "utf-8")
    with pytest.raises(StoreError, match="has lost its branch 'main'"):
        hl.Lab.open(lab.path, env=CorridorWorld())
    if lost == "renamed":
        git(lab.path, "branch", "-m", "trunk", "main")
        hl.Lab.open(lab.path, env=CorridorWorld()).close()
