"""The data folder, and fetching against a local server that misbehaves in every way that was thought of."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from harnesslab import data
from harnesslab.download import ATTEMPTS
from harnesslab.errors import ConfigError, EnvironmentUnavailable
from tests.fileserver import BODIES, Server

PUBLISHED = data.CATALOG


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> Path:
    """A data folder with a space and an umlaut, and one data set in the catalog."""
    home = tmp_path / "dätä folder"
    monkeypatch.setenv("HARNESSLAB_DATA", str(home))
    monkeypatch.delenv("HARNESSLAB_DATA_URL", raising=False)
    files = tuple(
        data.DataFile(name, f"{server.url}/set/{name}", len(body), hashlib.sha256(body).hexdigest())
        for name, body in BODIES.items()
    )
    monkeypatch.setattr(data, "CATALOG", {"set": data.DataSet("set", "a set", server.url, "MIT", files)})
    return home


def left(home: Path) -> dict[str, bytes]:
    """All files below the data folder, by relative path."""
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


WHOLE = {f"set/{name}": body for name, body in BODIES.items()}


def test_get_brings_all_files_and_find_finds_them(folder: Path) -> None:
    with pytest.raises(
        EnvironmentUnavailable, match=r"one.jsonl, two.jsonl, deep/er/three.txt\).*harnesslab data get set"
    ):
        data.find("set")
    assert [row.state for row in data.status()] == ["missing"]
    assert data.get("set", progress=False) == folder / "set" == data.find("set")
    assert left(folder) == WHOLE
    assert [row.state for row in data.status()] == ["here"]


def test_a_new_folder_takes_its_place_in_one_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "rename", full)
        with pytest.raises(EnvironmentUnavailable, match="No space left"):
            data.get("set", progress=False)
    assert left(folder) == {} and not (folder / "set").exists()
    (folder / "set").mkdir()
    (folder / "set" / "mine.txt").write_bytes(b"mine\n")
    assert [row.state for row in data.status()] == ["changed"]
    data.get("set", progress=False)
    assert left(folder) == {**WHOLE, "set/mine.txt": b"mine\n"}


def test_what_is_whole_is_not_fetched_again(folder: Path, server: Server) -> None:
    data.get("set", progress=False)
    (folder / "set" / "two.jsonl").write_bytes(b"edited\n")
    assert [row.state for row in data.status()] == ["changed"]
    server.asked.clear()
    data.get("set", progress=False)
    assert server.asked == ["two.jsonl"] and left(folder) == WHOLE


@pytest.mark.parametrize(
    "fault, words",
    [
        ("missing", "answered 404"),
        ("busy", "answered 503"),
        ("cut", "could not be read"),
        ("short", "gave 2 of 7 bytes"),
        ("longer", "gave more than 7 bytes"),
        ("wrong", "it is not the published file"),
    ],
)
def test_a_broken_download_leaves_nothing_half_done(folder: Path, server: Server, fault: str, words: str) -> None:
    server.faults["two.jsonl"] = [fault] * ATTEMPTS
    (folder / "set").mkdir(parents=True)
    (folder / "set" / "one.jsonl").write_bytes(b"mine\n")
    with pytest.raises(EnvironmentUnavailable, match=f"two.jsonl.* {words}.*Nothing was changed"):
        data.get("set", progress=False)
    # one.jsonl came whole, but the set takes its place only together.
    assert left(folder) == {"set/one.jsonl": b"mine\n"}
    server.faults.clear()
    assert data.get("set", progress=False) and left(folder) == WHOLE


@pytest.mark.parametrize("fault", ["busy", "cut"])
def test_what_passes_by_itself_is_tried_again(folder: Path, server: Server, fault: str) -> None:
    server.faults["one.jsonl"] = [fault]
    data.get("set", progress=False)
    assert left(folder) == WHOLE and server.asked.count("one.jsonl") == 2


def test_a_wrong_file_is_not_asked_for_again(server: Server) -> None:
    server.faults["one.jsonl"] = ["wrong"]
    with pytest.raises(EnvironmentUnavailable):
        data.get("set", progress=False)
    assert server.asked == ["one.jsonl"]


def test_a_mirror_by_argument_and_by_variable(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentUnavailable, match=r"http://127.0.0.1:\d+/other/set/one.jsonl answered 404"):
        data.get("set", base_url=f"{server.url}/other/", progress=False)
    monkeypatch.setenv("HARNESSLAB_DATA_URL", server.url)
    data.get("set", progress=False)
    assert left(folder) == WHOLE


def test_nobody_answers(server: Server) -> None:
    with pytest.raises(EnvironmentUnavailable, match="could not be read"):
        data.get("set", base_url="http://127.0.0.1:1", progress=False)
    with pytest.raises(EnvironmentUnavailable, match="could not be read"):
        data.get("set", base_url="nonsense", progress=False)


def test_the_folder_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("HARNESSLAB_DATA", str(tmp_path / "file"))
    with pytest.raises(EnvironmentUnavailable, match="cannot be written"):
        data.get("set", progress=False)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    data.get("set")
    assert "100%" in capsys.readouterr().err


def test_a_folder_of_ones_own(tmp_path: Path) -> None:
    for name in BODIES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine", encoding="utf-8")
    assert data.find("set", tmp_path) == tmp_path
    with pytest.raises(EnvironmentUnavailable, match=r"missing: one\.jsonl"):
        data.find("set", tmp_path / "nowhere")


def test_unknown_names_and_the_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"Unknown data set 'sett'\. Available: set"):
        data.get("sett")
    monkeypatch.delenv("HARNESSLAB_DATA")
    assert data.data_dir().parts[-2:] == ("harnesslab", "data")


def test_many_missing_files_are_not_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "CATALOG", PUBLISHED)
    with pytest.raises(EnvironmentUnavailable, match=r"missing: data/dev.json, [^()]* and 41 more\)"):
        data.find("agentbench-os")


def test_the_catalog_is_pinned() -> None:
    assert set(PUBLISHED) == {"agentbench-os", "alfworld", "dbbench", "tau2"}
    for wanted in PUBLISHED.values():
        for file in wanted.files:
            commit = re.match(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/", file.url)
            release = re.match(r"https://github\.com/[^/]+/[^/]+/releases/download/[0-9.]+/", file.url)
            assert commit or release, file.url
            assert re.fullmatch("[0-9a-f]{64}", file.sha256) and file.size > 0
            assert not Path(file.name).is_absolute() and ".." not in Path(file.name).parts
        assert len({file.name for file in wanted.files}) == len(wanted.files)
