import subprocess

import pytest


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "a folder"
    (place / "sub dir" / "deeper").mkdir(parents=True)
    (place / ".hidden").write_text("x")
    (place / "empty.log").touch()
    (place / "two words.txt").write_text("x")
    (place / "plain.txt").write_text("x")
    (place / "sub dir" / "inner.txt").write_text("x")
    (place / "link").symlink_to("plain.txt")
    return place


def answer(path):
    done = subprocess.run(["/app/{{SCRIPT}}", path], capture_output=True, text=True)
    assert done.returncode == 0
    return int(done.stdout)


def test_counts(folder):
    assert answer(folder) == {{COUNT}}


def test_empty(tmp_path):
    (tmp_path / "nothing").mkdir()
    assert answer(tmp_path / "nothing") == 0
