"""Opening is looking: whatever a lab brings along, nothing of it runs, and nothing outside it is read or written.

`docs/opening.md` states what is read, written and run; each plant here is tried with each act there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import StoreError, UnusualLab
from harnesslab.ledger import Ledger, write_learning
from harnesslab.store import LabRepo
from tests.store import hostile

Act = Callable[[LabRepo, hostile.Candidates], object]

ACTS: dict[str, Act] = {
    "list": lambda repo, ids: (repo.candidates(), repo.counts(), repo.history(), repo.version(), repo.notices()),
    "look at edits": lambda repo, ids: (repo.dirty(), repo.edits()),
    "diff": lambda repo, ids: repo.diff(ids.first, repo.candidate(ids.fitting).commit),
    "export": lambda repo, ids: repo.files(repo.baseline()),
    "propose": lambda repo, ids: repo.propose({"skill/other.yaml": "a: 1\n"}, "x"),
    "accept": lambda repo, ids: Ledger(repo).promote(ids.fitting, {}),
    "reject": lambda repo, ids: Ledger(repo).reject(ids.fitting, {}),
    "override": lambda repo, ids: Ledger(repo).override(ids.rejected, "me", "because"),
    "retry": lambda repo, ids: Ledger(repo).retry(ids.late),
    "undo": lambda repo, ids: Ledger(repo).undo(ids.rejected),
    "roll back": lambda repo, ids: Ledger(repo).rollback(ids.first),
}


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, hostile.Candidates]:
    """One innocent lab; tests get copies."""
    folder = tmp_path_factory.mktemp("pattern") / "lab"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        return folder, hostile.make(folder)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that a program of the lab would write."""
    return tmp_path / "it-ran"


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("plant", hostile.PLANTS)
def test_nothing_of_the_lab_runs(
    plant: str, act: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path, marker: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    hostile.PLANTS[plant].place(lab, marker)
    if act == "look at edits":
        (lab / "skill" / "plan.yaml").write_text("kind: prompt\ntext: mine\n", encoding="utf-8")
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(lab)
    repo = LabRepo.open(lab)
    refused = "lazy" in plant  # objects are missing, and are not fetched
    with contextlib.suppress(StoreError) if refused else contextlib.nullcontext():
        ACTS[act](repo, pattern[1])
    repo.close()
    assert not marker.exists()


@pytest.mark.parametrize("plant", [name for name, plant in hostile.PLANTS.items() if plant.proof])
def test_plain_git_would_have_run_it(
    plant: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path, marker: Path
) -> None:
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    late = LabRepo.open(lab).candidate(pattern[1].late).commit
    hostile.PLANTS[plant].place(lab, marker)
    (lab / "skill" / "plan.yaml").touch()
    command = [late if word == "LATE" else word for word in hostile.PLANTS[plant].proof or ()]
    (lab / "skill" / "mine.yaml").write_text("a: 1\n", encoding="utf-8")
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x", *command],
        cwd=lab, capture_output=True, check=False, input=b"protocol=http\nhost=x\n\n", timeout=60,
    )  # fmt: skip
    assert marker.exists()


@pytest.mark.parametrize("plant", [name for name in hostile.PLANTS if name != "a program called git"])
def test_a_lab_with_programs_is_announced(
    plant: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path, marker: Path
) -> None:
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    hostile.PLANTS[plant].place(lab, marker)
    with pytest.warns(UnusualLab, match=r"ignores this and runs none of it.*config first"):
        hl.Lab.open(lab, env="kitchen").close()
    assert not marker.exists()


def _as_tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _links(name: str) -> Callable[[Path, Path], None]:
    def place(lab: Path, victim: Path) -> None:
        target = lab / ".git" / name
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(victim / ".git" / name)

    return place


def _pipe(name: str) -> Callable[[Path, Path], None]:
    def place(lab: Path, victim: Path) -> None:
        (lab / ".git" / name).unlink(missing_ok=True)
        (lab / ".git" / name).parent.mkdir(exist_ok=True)
        os.mkfifo(lab / ".git" / name)

    return place


def _git_file(text: str) -> Callable[[Path, Path], None]:
    def place(lab: Path, victim: Path) -> None:
        shutil.move(lab / ".git", lab / "real")
        (lab / "real" / "commondir").write_text(f"{victim / '.git'}\n", encoding="utf-8")
        (lab / ".git").write_text(text.format(victim=victim), encoding="utf-8")

    return place


def _git_link(lab: Path, victim: Path) -> None:
    shutil.move(lab / ".git", lab / "real")
    (lab / ".git").symlink_to(victim / ".git")


ELSEWHERE: dict[str, Callable[[Path, Path], None]] = {
    "commondir": lambda lab, victim: (lab / ".git" / "commondir").write_text(f"{victim / '.git'}\n") and None,
    "gitdir of a stranger": _git_file("gitdir: {victim}/.git\n"),
    "gitdir with a commondir": _git_file("gitdir: real\n"),
    "gitdir of nothing": _git_file("gitdir: /nowhere\n"),
    "no gitdir": _git_file("hello"),
    "linked .git": _git_link,
    **{f"linked {name}": _links(name) for name in ("refs", "objects", "info", "logs", "harnesslab", "refs/heads", "HEAD",
                                                   "packed-refs", "index", "config", "info/exclude", "refs/notes")},
    **{f"a pipe as {name}": _pipe(name) for name in ("HEAD", "config", "packed-refs", "info/exclude", "index")},
}  # fmt: skip


@pytest.mark.parametrize("plant", ELSEWHERE)
def test_a_repository_that_leads_elsewhere_is_refused(
    plant: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path
) -> None:
    lab, victim = hostile.copy(pattern[0], tmp_path / "lab"), hostile.copy(pattern[0], tmp_path / "victim")
    ELSEWHERE[plant](lab, victim)
    before = _as_tree(victim)
    with pytest.raises(StoreError, match=r"git clone|no git repository of its own"):
        LabRepo.open(lab)
    assert _as_tree(victim) == before


def test_a_worktree_setting_leads_nowhere(
    pattern: tuple[Path, hostile.Candidates], tmp_path: Path, git: Callable[..., str]
) -> None:
    lab, victim = hostile.copy(pattern[0], tmp_path / "lab"), tmp_path / "victim"
    victim.mkdir()
    (victim / "skill.txt").write_text("mine", encoding="utf-8")
    with (lab / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(f"[core]\n\tworktree = {victim}\n")
    repo = LabRepo.open(lab)
    assert repo.dirty() == []
    Ledger(repo).promote(pattern[1].fitting, {})
    assert [path.name for path in victim.iterdir()] == ["skill.txt"] and (lab / "skill" / "new.yaml").exists()
    assert "core.worktree" in repo.notices()[0]


@pytest.mark.parametrize(
    "moves",
    [
        '[{"ref": "../../victim", "old": null, "new": null}]',
        '[{"ref": "refs/heads/main", "old": "x\\u0000create refs/heads/evil", "new": null}]',
        '[{"ref": "refs/harnesslab/candidates/../../../../../victim", "old": null, "new": "' + "0" * 40 + '"}]',
        '[{"ref": "refs/heads/other", "old": null, "new": "' + "0" * 40 + '"}]',
        "5", "[5]", "[" * 100_000, "", "null", '[{"ref": 5}]', '{"ref": "HEAD"}',
    ],
)  # fmt: skip
def test_a_planted_log_of_a_move_is_set_aside(
    moves: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path
) -> None:
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    (lab / ".git" / "harnesslab").mkdir()
    (lab / ".git" / "harnesslab" / "move.json").write_text(moves, encoding="utf-8")
    victim = tmp_path / "victim.lock"
    victim.touch()
    os.utime(victim, (1, 1))
    before = (lab / ".git" / "refs" / "heads" / "main").read_text()
    repo = LabRepo.open(lab)
    assert victim.exists() and (lab / ".git" / "refs" / "heads" / "main").read_text() == before
    assert (lab / ".git" / "harnesslab" / "move.json.bad").read_text(encoding="utf-8") == moves
    Ledger(repo).promote(pattern[1].fitting, {})


def test_a_list_that_came_with_the_lab_is_not_believed(
    pattern: tuple[Path, hostile.Candidates], tmp_path: Path
) -> None:
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    repo = LabRepo.open(lab)
    repo.candidates()
    repo.close()
    with contextlib.closing(sqlite3.connect(lab / ".git" / "harnesslab" / "index.db")) as db, db:
        db.execute("UPDATE candidates SET subject = 'forged', verdict = '{\"decision\": \"promote\"}'")
    assert any(row.subject == "forged" for row in LabRepo.open(lab).candidates().rows), "our own list is believed"
    shutil.copytree(lab, tmp_path / "copy")
    assert not any(row.subject == "forged" for row in LabRepo.open(tmp_path / "copy").candidates().rows)


ODD_NOTES = [
    '{"history": 5, "undone": "x", "state": "rejected"}', '{"history": [5], "undone": [[]]}', '{"state": {"a": 1}}',
    '{"reason": "\\ud800", "who": "\\u202e\\u001b[2J", "why": 5}', '{"solved": [1], "tasks": "many", "flips": 7}',
    '{"delta": 1e400, "decided_at": "yesterday"}', '{"a": 1, "a": 2}', "[]", "5", "", "[" * 100_000, "\xff", '{"state": null}',
    '{"solved": {"baseline": 5}, "tasks": 3, "metrics": [], "identity": "x", "criterion": {"x": []}}',
]  # fmt: skip


@pytest.mark.parametrize("note", ODD_NOTES)
def test_odd_notes_block_nothing(note: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path) -> None:
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    repo = LabRepo.open(lab)
    for name in (pattern[1].rejected, pattern[1].fitting):
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x", "notes", "--ref=harnesslab", "add", "-f", "-F", "-",
             repo.candidate(name).commit],
            cwd=lab, input=note.encode("latin-1"), check=True, capture_output=True,
        )  # fmt: skip
    opened = hl.Lab.open(lab, env="kitchen")
    assert (
        opened.rejected() and opened.pending() is not None and opened.curve() is not None and opened.log() is not None
    )
    assert repo.candidates(text="four").total == 1
    Ledger(repo).undo(pattern[1].rejected)
    Ledger(repo).promote(pattern[1].fitting, {"criterion": "x"})
    assert repo.verdict(repo.baseline()) is not None
    write_learning(opened.repo)
    opened.close()


def test_text_from_a_commit_moves_no_cursor(pattern: tuple[Path, hostile.Candidates], tmp_path: Path) -> None:
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    odd = "\x1b[2J\x07\u202egnihton"
    commit = subprocess.run(
        ["git", "-c", f"user.name=Eve{odd}", "-c", "user.email=x", "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", odd],
        cwd=lab, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    subprocess.run(["git", "update-ref", "refs/heads/main", commit], cwd=lab, check=True)
    entry = LabRepo.open(lab).history()[0]
    shown = entry.subject + entry.author
    assert "gnihton" in shown and not set(shown) & set("\x1b\x07\u202e")


def test_a_plain_lab_is_not_announced(repo: LabRepo, git: Callable[..., str]) -> None:
    git("config", "user.name", "Me")
    git("remote", "add", "origin", "https://example.org/lab.git")
    git("config", "core.autocrlf", "false")
    assert repo.notices() == []


ODD_FILES: dict[str, bytes | str] = {
    "empty": b"", "text": b"hello", "truncated": b'{"run_id": "x", "summ', "a number": b"5", "null": b"null", "binary": bytes(range(256)) * 50,
    "deep": b"[" * 200_000, "a list": b"[]", "other keys": b'{"a": 1}', "wrong types": b'{"run_id": 5, "summary": [], "trace": 1}',
    "wrong fields": b'{"run_id": "x", "summary": {"repeat": "many", "seed": 1e400, "fired": 5}, "trace": []}',
    "huge numbers": b'{"run_id": "x", "summary": {"seed": ' + b"9" * 60 + b'}, "trace": [{}]}',
    "odd steps": b'{"run_id": "x", "summary": {}, "trace": [5, null, "x"]}',
    "odd text": b'{"run_id": "\\ud800", "summary": {"task_id": "\\ud800"}, "trace": []}',
    "latin": "{\"run_id\": \"ä\"}".encode("latin-1"), "folder": "folder", "pipe": "pipe", "broken link": "link",
}  # fmt: skip


def _place(path: Path, odd: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if isinstance(odd, bytes):
        path.write_bytes(odd)
    elif odd == "folder":
        (path / "inner").mkdir(parents=True)
    elif odd == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.parent / "nowhere")


@pytest.mark.parametrize("odd", ODD_FILES)
@pytest.mark.parametrize("name", ["spill/x.json", "spill", "lab.db"])
def test_an_odd_file_among_the_records_is_set_aside(
    name: str, odd: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path
) -> None:
    if odd == "broken link" and name != "spill/x.json":
        pytest.skip("a link in place of the records is another matter")
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    place = lab / ".harnesslab" / name
    _place(place, ODD_FILES[odd])
    fine = (name, odd) in (("lab.db", "empty"), ("spill", "folder"))
    expected: Any = contextlib.nullcontext() if fine else pytest.warns(UnusualLab, match="set aside as")
    with expected:
        opened = hl.Lab.open(lab, env="kitchen")
    run = opened.runs.begin_run("0", {}, split="gate")
    assert opened.runs.add_episode(run, {"task_id": "t"}, [{"a": 1}]) is not None
    opened.close()
    if not fine:
        assert os.path.lexists(place.with_name(f"{place.name}.bad")), "nothing is lost"
        if isinstance(ODD_FILES[odd], bytes):
            assert place.with_name(f"{place.name}.bad").read_bytes() == ODD_FILES[odd]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hl.Lab.open(lab, env="kitchen").close()


@pytest.mark.parametrize("odd", ODD_FILES)
@pytest.mark.parametrize("name", ["lock-owner.json", "index.db", "move.json", "index.next"])
def test_an_odd_file_of_ours_in_the_git_folder_blocks_nothing(
    name: str, odd: str, pattern: tuple[Path, hostile.Candidates], tmp_path: Path
) -> None:
    lab = hostile.copy(pattern[0], tmp_path / "lab")
    _place(lab / ".git" / "harnesslab" / name, ODD_FILES[odd])
    if odd in ("pipe", "broken link"):
        with pytest.raises(StoreError, match="is a link or a special file"):
            LabRepo.open(lab)
        return
    repo = LabRepo.open(lab)
    assert repo.candidates().total == 4
    Ledger(repo).promote(pattern[1].fitting, {})
    with repo._core.lock.hold("x"), contextlib.suppress(StoreError):
        _place(lab / ".git" / "harnesslab" / "lock-owner.json", ODD_FILES[odd])
        assert repo._core.lock._describe(1.0).startswith("The lab is locked by another process")


ODD_NAMES = [
    "x" * 256, "ü" * 128, "a/" * 600 + "b", "a:b", "a*", "a?", 'a"b', "a<b", "a|b", "con", "NUL.yaml", "skill/com1.py", "lpt\u00b9", "a.", "a ",
    "skill./a.yaml", "a\tb", "a\nb", "a\x1bb", "a\x7fb", "a\x9bb", "a\u202eb", "a\u200eb", "a\ufeffb", "a\u2028b", "a\ud800", "", "/a", "a//b", "./a", "../a",
    ".git/config", ".GIT/x", "sub/.git/x", ".g\u200cit/x", "git~1/x", ".git ./x", ".git:x", ".harnesslab/x", "a\\b", 5, None, b"a", Path("a"),
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: ascii(name)[:40])
def test_a_name_that_some_file_system_cannot_hold_is_refused_when_proposed(name: object, repo: LabRepo) -> None:
    with pytest.raises(StoreError, match=r"cannot be a file of a harness: .+\.$") as refused:
        repo.propose({name: "a: 1\n"}, "x")  # type: ignore[dict-item]
    assert refused.value.cause == "proposal" and repo.candidates().total == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"SKILL/new.yaml": "1"}, "same name"), ({"skill/PLAN.yaml": "1"}, "same name"), ({"\u00e9": "1", "e\u0301": "2"}, "same name"),
        ({"stra\u00dfe": "1", "STRASSE": "2"}, "same name"), ({"harness.toml/x": "1"}, "both a file and a folder"),
        ({"skill": "1"}, "both a file and a folder"), ({"a": "1", "a/b": "1"}, "both a file and a folder"),
        ({"a": 5}, "text or bytes"), ({"a": "\ud800"}, "UTF-8"), ({"a": ["1"]}, "text or bytes"),
    ],
)  # fmt: skip
def test_names_in_each_others_way_are_refused_when_proposed(changes: dict[str, str], says: str, repo: LabRepo) -> None:
    with pytest.raises(StoreError, match=says) as refused:
        repo.propose(changes, "x")
    assert refused.value.cause == "proposal" and repo.candidates().total == 0
    repo.propose({"skill/PLAN.yaml": "1", "skill/plan.yaml": None}, "another spelling")
