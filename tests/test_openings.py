"""How often the sealed split was opened is known for good: in git, after starting over, in a clone, next to older records."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from tests.conftest import always
from tests.worlds import CorridorWorld


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout


def opened(lab: Any, **settings: Any) -> int:
    """Open the sealed split once, as a user does; returns how many openings are on record then."""
    made = hl.Trainer(lab, always("right"), settings={"progress": False, "sealed": 2, **settings})
    table = made.open_sealed()
    assert f"{len(lab.openings())} runs on record" in table.title
    return len(lab.openings())


def test_openings_are_git_notes_with_who_when_commit_and_backbone(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    assert opened(lab) == 2
    commit = lab.repo.baseline()
    lines = git(lab.path, "notes", "--ref=harnesslab-sealed", "show", commit).splitlines()
    notes = [json.loads(line) for line in lines if line]
    assert [note["backbone"]["model"] for note in notes] == ["always right", "random"]
    assert all(note["commit"] == commit and note["who"] and note["at"] > 1e9 for note in notes)
    assert {note["environment"] for note in notes} == {"corridor"}
    row = lab.openings()[0]
    assert row["commit"] == commit[:10] and row["backbone"] == "random" and row["environment"] == "corridor"
    assert git(lab.path, "status", "--porcelain") == "" and lab.repo.candidates().total == 0


def test_starting_over_keeps_the_count_however_often(open_lab: Callable[..., Any]) -> None:
    for round_ in range(3):
        lab = open_lab(fresh=round_ > 0)
        assert len(lab.openings()) == 2 * round_
        assert opened(lab) == 2 * round_ + 2
        lab.close()
    names = [row["lab"] for row in open_lab().openings()]
    assert names == ["", "", "lab.2", "lab.2", "lab.1", "lab.1"]


def test_a_new_lab_does_not_count_the_openings_of_another_environment(open_lab: Callable[..., Any]) -> None:
    first = open_lab()
    opened(first)
    first.close()
    other = open_lab(fresh=True, env="kitchen")
    made = hl.Trainer(other, hl.LLM.random(0), settings={"progress": False, "sealed": 1, "budget": 1})
    assert "1 run on record" in made.open_sealed(controls=[]).title
    assert sorted(row["environment"] for row in other.openings()) == ["corridor", "corridor", "kitchen"]


@pytest.mark.parametrize("how", ["clone", "mirror", "fetch", "copy"])
def test_a_clone_knows_the_openings(open_lab: Callable[..., Any], tmp_path: Path, how: str) -> None:
    lab = open_lab()
    opened(lab)
    source, target = str(lab.path), tmp_path / "clone"
    if how == "copy":
        lab.close()
        shutil.copytree(source, target)
        shutil.rmtree(target / ".harnesslab")
    elif how == "mirror":
        git(tmp_path, "clone", "-q", "--mirror", source, str(target / ".git"))
        git(target, "config", "core.bare", "false")
        git(target, "reset", "-q", "--hard")
    else:
        git(tmp_path, "clone", "-q", *(["--no-tags"] if how == "fetch" else []), source, str(target))
        if how == "fetch":
            git(target, "fetch", "-q", "origin", "refs/notes/*:refs/notes/*")
    clone = open_lab("clone")
    assert [row["backbone"] for row in clone.openings()] == ["random", "always right"]
    assert opened(clone) == 4


def test_openings_of_clones_that_went_different_ways_merge(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    lab = open_lab()
    opened(lab)
    git(tmp_path, "clone", "-q", str(lab.path), str(tmp_path / "clone"))
    clone = open_lab("clone")
    assert opened(clone) == 4 and opened(lab) == 4
    git(lab.path, "fetch", "-q", str(clone.path), "refs/notes/harnesslab-sealed:refs/notes/theirs")
    git(lab.path, "notes", "--ref=harnesslab-sealed", "merge", "-q", "-s", "cat_sort_uniq", "refs/notes/theirs")
    assert len(lab.openings()) == 6 and opened(lab) == 8
    git(lab.path, "fetch", "-q", str(clone.path), "+refs/notes/harnesslab-sealed:refs/notes/harnesslab-sealed")
    assert len(lab.openings()) == 8, "the tag still holds what the fetch overwrote"


def test_older_records_count_once_also_after_starting_over(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    for _ in range(3):
        data = {"commit": lab.repo.baseline(), "backbone": {"model": "older"}, "who": "me"}
        lab.runs.add_event("sealed", data)
    assert len(lab.openings()) == 3
    assert opened(lab) == 5 and opened(lab) == 7
    assert len(git(lab.path, "notes", "--ref=harnesslab-sealed", "show", lab.repo.baseline()).split("\n")) == 8
    lab.close()
    assert len(open_lab(fresh=True).openings()) == 7


def test_older_records_are_filed_under_the_environment_that_was_played(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    commit = lab.repo.baseline()
    lab.runs.begin_run(commit, {"environment": "elsewhere"}, split="sealed")
    lab.runs.add_event("sealed", {"commit": commit, "backbone": {"model": "older"}, "who": "me"})
    lab.close()
    assert [row["environment"] for row in open_lab(fresh=True).openings()] == ["elsewhere"]


def test_many_at_once_lose_none(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    world, commit = CorridorWorld(), lab.repo.baseline()

    def note(number: int) -> None:
        lab.record_opening(commit, {"model": f"m{number}"}, world, "me")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(note, range(8)))
    assert {row["backbone"] for row in lab.openings()} == {f"m{number}" for number in range(8)}


@pytest.mark.parametrize(
    "text",
    [
        "nonsense\n", "[]\n", "{}\n", "[" * 100_000, '{"id": 1}\n', "\x00\xff\n", "x" * 5_000_000,
        '{"id": "a", "at": 1e300, "commit": "' + "a" * 40 + '", "backbone": {}, "who": ""}\n',
        '{"id": "a", "at": 1, "commit": "../x", "backbone": {}, "who": ""}\n',
        '{"id": "a", "at": NaN, "commit": "' + "a" * 40 + '", "backbone": {}, "who": ""}\n',
    ],
    ids=range(10),
)  # fmt: skip
def test_what_somebody_else_wrote_there_is_left_alone(open_lab: Callable[..., Any], text: str) -> None:
    lab = open_lab()
    (lab.path.parent / "note").write_text(text, encoding="utf-8")
    git(lab.path, "-c", "user.name=x", "-c", "user.email=x@x", "notes", "--ref=harnesslab-sealed", "add", "-F",
        str(lab.path.parent / "note"), "HEAD")  # fmt: skip
    assert len(lab.openings()) == 0
    lab.record_opening(lab.repo.baseline(), {"model": "m"}, lab.environment, "me")
    assert [row["backbone"] for row in lab.openings()] == ["m"]


def test_nothing_is_opened_that_cannot_be_recorded(open_lab: Callable[..., Any], monkeypatch: Any) -> None:
    lab = open_lab()
    notes = lab.repo.git_dir / "refs" / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "harnesslab-sealed.lock").write_text("", encoding="utf-8")
    with pytest.raises(hl.errors.StoreError):
        opened(lab)
    assert lab.runs.runs(split="sealed") == []
