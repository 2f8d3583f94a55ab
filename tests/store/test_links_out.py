"""No write follows a link out of a lab: not at its opening, not at an act, not in a training, and not if the link is put there in between."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import HarnesslabError, StoreError
from harnesslab.ledger import Ledger
from harnesslab.store import LabRepo, RunStore, ownfiles
from tests.store import hostile

FOLDERS = (".harnesslab", ".harnesslab/spill", ".git/harnesslab", ".git/logs", ".git/info", "skill")
FILES = (
    "learning.md", ".harnesslab/lab.json", ".harnesslab/lab.db", ".harnesslab/lab.db-wal", ".harnesslab/lab.db-shm",
    ".git/info/exclude", ".git/HEAD", ".git/index", ".git/packed-refs", ".git/refs/heads/main", ".git/logs/HEAD",
    ".git/logs/refs/heads/main", ".git/harnesslab/lab.lock", ".git/harnesslab/index.db", ".git/harnesslab/index.db-wal",
    ".git/harnesslab/index.next", ".git/harnesslab/move.json", ".git/harnesslab/move.new", ".git/harnesslab/lock-owner.json",
    "harness.toml", "skill/plan.yaml", "skill/new.yaml", ".gitattributes",
)  # fmt: skip

Plant = Callable[[Path, Path], None]
"""`plant(place, victim)`: the victim is a file, or a folder with a file in it."""


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)


def link(place: Path, victim: Path) -> None:
    _remove(place)
    place.symlink_to(victim)


def relative_link(place: Path, victim: Path) -> None:
    _remove(place)
    place.symlink_to(os.path.relpath(victim, place.parent))


def chain(place: Path, victim: Path) -> None:
    (place.parent / "between").parent.mkdir(parents=True, exist_ok=True)
    (place.parent / "between").symlink_to(victim)
    link(place, Path("between"))


def dangling(place: Path, victim: Path) -> None:
    link(place, victim.parent / "not there yet")


def hard_link(place: Path, victim: Path) -> None:
    _remove(place)
    place.hardlink_to(victim)


PLANTS: dict[str, tuple[Plant, tuple[str, ...]]] = {
    "link": (link, (*FILES, *FOLDERS)),
    "relative link": (relative_link, ("learning.md", ".harnesslab", ".harnesslab/lab.db", ".git/info/exclude")),
    "link to a link": (chain, ("learning.md", ".harnesslab", ".harnesslab/lab.json", ".git/logs/HEAD")),
    "dangling link": (dangling, (*FILES, *FOLDERS)),
    "hard link": (hard_link, FILES),
}
CASES = [(kind, name) for kind, (_, names) in PLANTS.items() for name in names]


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, hostile.Candidates]:
    """One innocent lab with records; tests get copies."""
    folder = tmp_path_factory.mktemp("pattern") / "lab"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        ids = hostile.make(folder)
        hl.Lab.open(folder, env="kitchen").close()
        return folder, ids


@pytest.fixture
def lab(pattern: tuple[Path, hostile.Candidates], tmp_path: Path) -> Path:
    return hostile.copy(pattern[0], tmp_path / "lab")


def _victim(tmp_path: Path, name: str, lab: Path) -> Path:
    """Somebody's file or folder with the content that fits the place best, so that a careless writer gets far."""
    outside = tmp_path / "outside"
    outside.mkdir()
    place, victim = lab / name, outside / "victim"
    if name in FOLDERS:
        shutil.copytree(place, victim) if place.is_dir() else victim.mkdir()
        (victim / "mine.txt").write_text("mine", "utf-8")
    elif place.is_file():
        shutil.copy2(place, victim)
    elif name.endswith(".db"):
        with contextlib.closing(sqlite3.connect(victim)) as db, db:
            db.execute("CREATE TABLE mine (a)")
    else:
        victim.write_text("mine\n", "utf-8")
    return victim


def _all(outside: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(outside)): path.read_bytes() if path.is_file() else None for path in outside.rglob("*")
    }


def _use(lab: Path, ids: hostile.Candidates) -> list[str]:
    """Everything that writes, each on its own; returns the sentences of what was refused."""
    said: list[str] = []

    def attempt(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except HarnesslabError as error:
            assert "\n" not in str(error)
            said.append(str(error))
            return None

    opened = attempt(lambda: hl.Lab.open(lab, env="kitchen"))
    for act in (
        lambda repo: repo.propose({"skill/other.yaml": "a: 1\n"}, "x"),
        lambda repo: Ledger(repo).reject(ids.late, {}),
        lambda repo: Ledger(repo).promote(ids.fitting, {}),
        lambda repo: Ledger(repo).rollback(ids.first),
        lambda repo: repo.record_openings([]),
    ):
        attempt(lambda act=act: act(LabRepo.open(lab)))
    if opened is not None:
        run = attempt(lambda: opened.runs.begin_run("0", {}, split="gate"))
        if run is not None:
            attempt(lambda: opened.runs.add_episode(run, {"task_id": "t"}, [{"a": 1}]))
        attempt(opened.close)
    return said


@pytest.mark.filterwarnings("ignore::harnesslab.errors.UnusualLab")
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_nothing_outside_is_written(kind: str, name: str, lab: Path, pattern: Any, tmp_path: Path) -> None:
    victim = _victim(tmp_path, name, lab)
    PLANTS[kind][0](lab / name, victim)
    before = _all(tmp_path / "outside")
    said = _use(lab, pattern[1])
    assert _all(tmp_path / "outside") == before
    for sentence in said:
        assert str(lab) in sentence


@pytest.mark.filterwarnings("ignore::harnesslab.errors.UnusualLab")
@pytest.mark.parametrize(("kind", "name"), [case for case in CASES if "/HEAD" not in case[1]])
def test_nothing_outside_is_written_if_it_is_put_there_later(
    kind: str, name: str, lab: Path, pattern: Any, tmp_path: Path
) -> None:
    victim = _victim(tmp_path, name, lab)
    opened, ids = hl.Lab.open(lab, env="kitchen"), pattern[1]
    opened.repo.candidates()
    PLANTS[kind][0](lab / name, victim)
    before = _all(tmp_path / "outside")
    for act in (
        lambda: Ledger(opened.repo).reject(ids.late, {}),
        lambda: Ledger(opened.repo).promote(ids.fitting, {}),
        lambda: hl.Lab.open(lab, env="kitchen").close(),
        opened.close,
    ):
        with contextlib.suppress(HarnesslabError):
            act()
    assert _all(tmp_path / "outside") == before


@pytest.mark.parametrize("name", ["learning.md", ".harnesslab/lab.json", ".git/info/exclude"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link"])
def test_what_we_write_ourselves_takes_the_place_of_a_link(
    name: str, kind: str, lab: Path, pattern: Any, tmp_path: Path
) -> None:
    victim = _victim(tmp_path, name, lab)
    PLANTS[kind][0](lab / name, victim)
    ownfiles.write(lab, name, b"ours")
    assert (lab / name).read_bytes() == b"ours" and not (lab / name).is_symlink() and (lab / name).stat().st_nlink == 1
    assert list((lab / name).parent.glob("*.new")) == []


@pytest.mark.parametrize(
    "name", [".harnesslab", ".harnesslab/lab.db", ".harnesslab/lab.json", ".harnesslab/spill", ".git/logs"]
)
def test_the_sentence_names_the_link(name: str, lab: Path, tmp_path: Path) -> None:
    victim = _victim(tmp_path, name, lab)
    link(lab / name, victim)
    with pytest.raises(StoreError, match=r"is a link or a special file, so") as refused:
        hl.Lab.open(lab)
    assert str(lab / name) in str(refused.value) and refused.value.cause == "refused"


def test_a_link_that_comes_and_goes_is_never_written_through(lab: Path, tmp_path: Path) -> None:
    outside, inside, kept = tmp_path / "outside", lab / ".harnesslab", tmp_path / "kept"
    outside.mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            shutil.rmtree(kept, ignore_errors=True)
            with contextlib.suppress(OSError):  # the writer may have made a new folder meanwhile
                inside.rename(kept)
                inside.symlink_to(outside)
            if inside.is_symlink():
                inside.unlink()

    other = threading.Thread(target=swap)
    other.start()
    written = 0
    try:
        for number in range(500):
            with contextlib.suppress(OSError, StoreError):
                ownfiles.write(lab, ".harnesslab/spill/x.json", str(number).encode())
                written += 1
    finally:
        stop.set()
        other.join()
    assert list(outside.iterdir()) == [] and written


def test_records_behind_a_link_are_not_read(lab: Path, tmp_path: Path) -> None:
    shutil.move(lab / ".harnesslab", tmp_path / "elsewhere")
    (lab / ".harnesslab").symlink_to(tmp_path / "elsewhere")
    before = _all(tmp_path / "elsewhere")
    looked = hl.Lab.look(lab)
    assert not looked.recorded and len(looked.log()) == 2, "the commits can be looked at"
    with pytest.raises(StoreError, match="is a link"):
        RunStore.open(lab, mend=False)
    assert _all(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("odd", ["folder", "pipe"])
def test_something_odd_in_place_of_the_memo_blocks_nothing(odd: str, lab: Path, pattern: Any) -> None:
    (lab / "learning.md").unlink()
    (lab / "learning.md").mkdir() if odd == "folder" else os.mkfifo(lab / "learning.md")
    Ledger(LabRepo.open(lab)).promote(pattern[1].fitting, {})
    assert (lab / "learning.md").is_dir() == (odd == "folder")


@pytest.mark.parametrize("odd", ["pipe", "huge"])
def test_an_odd_note_of_the_environment_is_named(odd: str, lab: Path) -> None:
    note = lab / ".harnesslab" / "lab.json"
    note.unlink(missing_ok=True)
    if odd == "pipe":
        os.mkfifo(note)
    else:
        note.write_bytes(b" " * (ownfiles.MAX_BYTES + 1))
    with pytest.raises(HarnesslabError, match=r"lab\.json"):
        hl.Lab.open(lab)


def test_copies_that_share_files_with_the_original_are_refused_and_copies_of_them_are_not(
    lab: Path, tmp_path: Path
) -> None:
    with contextlib.closing(RunStore.open(lab)) as runs:
        runs.begin_run("0", {}, split="gate")
    shared = shutil.copytree(lab, tmp_path / "shared", copy_function=os.link)
    with pytest.raises(StoreError, match=r"second name elsewhere.*cp -a"):
        hl.Lab.open(shared, env="kitchen")
    hl.Lab.open(shutil.copytree(shared, tmp_path / "own"), env="kitchen").close()


def test_a_plain_clone_shares_objects_and_opens(lab: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", str(lab), str(tmp_path / "clone")], check=True)
    assert any(
        path.stat().st_nlink > 1 for path in (tmp_path / "clone" / ".git" / "objects").rglob("*") if path.is_file()
    )
    hl.Lab.open(tmp_path / "clone", env="kitchen").close()
