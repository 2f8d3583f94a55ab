"""A published file: fetched, bounded, checked, in place only when whole, and nothing said but what matters."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import pytest

from harnesslab.download import CHUNK, DownloadFailed, fetch, is_whole
from tests.fileserver import BODIES, Server

NAME = "one.jsonl"
BODY = BODIES[NAME]
SHA256 = hashlib.sha256(BODY).hexdigest()


class Counted:
    """What a bar shows."""

    def __init__(self) -> None:
        self.at, self.most = 0.0, 0.0

    def update(self, n: float) -> None:
        self.at += n
        self.most = max(self.most, self.at)


def test_a_file_and_its_bytes_are_counted(tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    bar, target = Counted(), tmp_path / "sub" / "file"
    with caplog.at_level(logging.INFO):
        fetch(f"{server.url}/set/{NAME}", target, size=len(BODY), sha256=SHA256, bar=bar)
    assert target.read_bytes() == BODY and bar.at == bar.most == len(BODY) and not caplog.records
    assert target.stat().st_mode & 0o444 == 0o444
    fetch("http://127.0.0.1:1/", target, size=len(BODY), sha256=SHA256)
    assert is_whole(target, size=len(BODY), sha256=SHA256) and server.asked == [NAME]


@pytest.mark.parametrize("fault", ["missing", "busy", "cut", "short", "longer", "wrong"])
@pytest.mark.parametrize("before", [None, b"mine"])
def test_a_bad_download_changes_nothing(tmp_path: Path, server: Server, fault: str, before: bytes | None) -> None:
    bar, target = Counted(), tmp_path / "file"
    if before:
        target.write_bytes(before)
    server.faults[NAME] = [fault] * 9
    with pytest.raises(DownloadFailed, match=rf"^{server.url}/set/{NAME} ") as caught:
        fetch(f"{server.url}/set/{NAME}", target, size=len(BODY), sha256=SHA256, bar=bar)
    assert " at 0x" not in str(caught.value) and len(str(caught.value)) < 300
    assert (target.read_bytes() if target.exists() else None) == before and len(list(tmp_path.iterdir())) == bool(
        before
    )
    assert bar.most <= len(BODY)


def test_an_endless_file_is_left_at_once(tmp_path: Path, server: Server) -> None:
    written: list[int] = []
    size = 10

    def watch(n: float) -> None:
        written.append(int(n))

    bar = Counted()
    bar.update = watch  # type: ignore[method-assign]
    with pytest.raises(DownloadFailed, match="gave more than 10 bytes"):
        fetch(f"{server.url}/set/{NAME}", tmp_path / "file", size=size, sha256=SHA256, bar=bar)
    assert len(BODY) > 2 * CHUNK and sum(written) == 0 and not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["nonsense", "http://", "ftp://127.0.0.1/x", "http://127.0.0.1:1/x", "http://[::1/x"])
def test_an_address_that_nobody_answers_is_named(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadFailed, match="could not be read") as caught:
        fetch(url, tmp_path / "file", size=1, sha256=SHA256)
    assert str(caught.value).startswith(url) and " at 0x" not in str(caught.value)
