"""JSON and YAML from outside that is nested without end: each reader says so, and none is stopped by it."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from harnesslab.errors import ConfigError, StoreError
from harnesslab.llm import Recording
from harnesslab.llm.body import unwrap_choice
from harnesslab.store.codec import unpack
from harnesslab.store.notes import parse_note
from harnesslab.subproc.frames import FrameError, decode
from harnesslab.trainer.config import read_config

DEEP = "[" * 200_000


def test_a_note_of_somebody_else() -> None:
    assert parse_note(DEEP.encode()) is None


def test_a_stored_trace() -> None:
    with pytest.raises(StoreError, match="damaged"):
        unpack(zlib.compress(DEEP.encode()))


def test_a_frame_of_an_environment() -> None:
    with pytest.raises(FrameError):
        decode(DEEP.encode())


def test_a_line_of_a_recording(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(DEEP + "\n")
    assert len(Recording.open(tmp_path / "r.jsonl")) == 0


def test_a_constrained_reply() -> None:
    body = {"response_format": {"json_schema": {"name": "choice"}}}
    assert unwrap_choice(DEEP, body) == DEEP


def test_a_file_of_a_training(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("a: " + "[" * 5000)
    with pytest.raises(ConfigError, match=r"t\.yaml is not valid YAML"):
        read_config(tmp_path / "t.yaml")
