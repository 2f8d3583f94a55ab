"""Task files of every format: what editors add is read, and what is broken is one sentence with file, line and key."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.rollout import taskfiles as files

VALUE = {"a": "caf\u00e9\ntwo", "b": [1, 2.5, None, True]}
READERS: dict[str, tuple[Callable[[Path], Any], str, Any]] = {
    "json": (files.read_json, '{"a": "caf\u00e9\\ntwo",\n "b": [1, 2.5, null, true]}\n', VALUE),
    "jsonl": (
        lambda path: [v for _, v in files.read_jsonl(path)],
        '{"a": 1}\n{"a": "\u00e9"}\n',
        [{"a": 1}, {"a": "\u00e9"}],
    ),
    "yaml": (files.read_yaml, "a: |-\n  caf\u00e9\n  two\nb: [1, 2.5, null, true]\n", VALUE),
    "toml": (files.read_toml, 'a = "caf\u00e9"\n\n[t]\nb = """x\ny"""\n', {"a": "caf\u00e9", "t": {"b": "x\ny"}}),
    "csv": (files.read_csv, 'a,b\n1,"caf\u00e9\ntwo"\n', [{"a": "1", "b": "caf\u00e9\ntwo"}]),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("more", ["", "\n", "\n  \n\n"])
def test_marks_line_ends_and_blank_lines_make_no_difference(
    tmp_path: Path, kind: str, encoding: str, end: str, more: str
) -> None:
    read, text, value = READERS[kind]
    path = tmp_path / f"tasks.{kind}"
    path.write_bytes((text + more).replace("\n", end).encode(encoding))
    if kind == "csv" and more.strip("\n"):
        return  # a cell of spaces is a cell
    assert read(path) == value


BROKEN: dict[str, tuple[str, bytes, int | None, str | None, str]] = {
    "json empty": ("json", b"", 1, None, "is empty"),
    "json cut": ("json", b'{"a":\n [1, 2', 2, None, "ends in the middle"),
    "json cut text": ("json", b'{"a": "b', 1, None, "ends in the middle"),
    "json comma": ("json", b'{"a": 1,\n}', 2, None, "not valid JSON"),
    "json twice": ("json", b'{"a": 1,\n"b": 2,\n"a": 3}', 3, "a", "given twice"),
    "json NaN": ("json", b'{"a": NaN}', 1, None, "NaN"),
    "json deep": ("json", b"[" * 5000, 1, None, "nested too deeply"),
    "json latin-1": ("json", b'{"a":\n"caf\xe9"}', 2, None, "not valid UTF-8 (0xe9)"),
    "json gzip": ("json", gzip.compress(b'{"a": 1}'), None, None, "gzip-compressed; unpack it first"),
    "yaml zip": ("yaml", b"PK\x03\x04 and more", None, None, "zip-compressed; unpack it first"),
    "jsonl zstd": ("jsonl", b"\x28\xb5\x2f\xfd and more", None, None, "zstd-compressed; unpack it first"),
    "json pointer": ("json", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", None, None, "git lfs pull"),
    "json NUL": ("json", b'{"a": 1,\n"b": "\x00"}', 2, None, "NUL character"),
    "yaml NUL": ("yaml", b"a: 1\n\x00", 2, None, "NUL character"),
    "toml NUL": ("toml", b"a = 1\x00", 1, None, "NUL character"),
    "csv NUL": ("csv", b"a\n\x00\n", 2, None, "NUL character"),
    "jsonl UTF-16 without its mark": ("jsonl", '{"a": 1}\n'.encode("utf-16-le"), 1, None, "save the file as UTF-8"),
    "jsonl empty": ("jsonl", b"", None, None, "is empty"),
    "jsonl blank": ("jsonl", b"\xef\xbb\xbf\n \r\n", None, None, "is empty"),
    "jsonl cut": ("jsonl", b'{"a": 1}\n\n{"a": 2', 3, None, "ends in the middle"),
    "jsonl twice": ("jsonl", b'{"a": 1}\n{"a": 1, "a": 2}\n', 2, "a", "given twice"),
    "jsonl two": ("jsonl", b'{"a": 1} {"a": 2}\n', 1, None, "Extra data"),
    "yaml cut": ("yaml", b"a: 1\nb: [1,\n", 3, None, "not valid YAML"),
    "yaml twice": ("yaml", b"a:\n  c: 1\n  c: 1\n", 3, "c", "given twice"),
    "yaml tag": ("yaml", b"a: !!python/object/apply:os.system [x]\n", 1, None, "not valid YAML"),
    "yaml tab": ("yaml", b"a:\n\t- b\n", 2, None, "not valid YAML"),
    "yaml date": ("yaml", b"a: 2020-13-45\n", None, None, "not valid YAML"),
    "toml cut": ("toml", b'a = 1\nb = "x', 2, None, "not valid TOML"),
    "toml twice": ("toml", b"a = 1\na = 2\n", 2, None, "not valid TOML"),
    "csv empty": ("csv", b"\n\n", None, None, "is empty"),
    "csv column": ("csv", b"a,b,a\n1,2,3\n", 1, "a", "duplicate column"),
    "csv cells": ("csv", b"a,b\n1,2\n1\n", 3, None, "1 cells, where the header has 2"),
    "csv cut": ("csv", b'a,b\n1,"x', 2, None, "not valid CSV"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_one_sentence(tmp_path: Path, case: str) -> None:
    kind, content, line, key, message = BROKEN[case]
    path = tmp_path / f"tasks.{kind}"
    path.write_bytes(content)
    with pytest.raises(files.TaskFileError) as caught:
        READERS[kind][0](path)
    error = caught.value
    assert (error.line, error.key) == (line, key) and message in str(error) and str(error).startswith(str(path))
    assert "\n" not in str(error)
    assert isinstance(error, ConfigError) and isinstance(error, EnvironmentUnavailable)


def test_a_file_that_is_not_there_or_a_folder_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(files.TaskFileError, match="cannot be read"):
            files.read_json(path)


@given(content=st.binary(max_size=200), kind=st.sampled_from(sorted(READERS)))
def test_no_bytes_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, content: bytes, kind: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    try:
        READERS[kind][0](path)
    except files.TaskFileError as error:
        assert str(path) in str(error)
