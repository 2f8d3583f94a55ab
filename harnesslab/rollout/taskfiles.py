"""Reads the files that hold tasks, JSON, JSON lines, YAML, TOML and CSV, in one way for every environment.

A byte order mark, CRLF and blank lines make no difference. Whatever else is wrong is one :class:`TaskFileError`, which
names the file, the line and the key. Standard library only, but for YAML.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.plainjson import MAX_DEPTH, loads, too_deep

# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_PACKED = (
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_POINTER = b"version https://git-lfs.github.com/spec/"
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
_TWICE = re.compile(r"the key '(.*)' is given twice", re.DOTALL)


class TaskFileError(ConfigError, EnvironmentUnavailable):
    """A file with tasks cannot be used; names the file, the line (from 1) and the key."""

    def __init__(self, path: Path | str, message: str, *, line: int | None = None, key: str | None = None):
        self.path, self.line, self.key, self.what = Path(path), line, key, message
        where = str(path) + (f", line {line}" if line is not None else "")
        super().__init__(f"{where}{f', key {key!r}' if key else ''}: {message}")


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises TaskFileError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TaskFileError(path, f"cannot be read: {error.strerror or error}") from error


def decode(content: bytes, path: Path | str) -> str:
    """UTF-8, or UTF-16 and UTF-32 with their mark; lines end with LF. Raises TaskFileError with the line.

    What is not a text (a compressed file, a pointer of Git LFS, NUL characters) is refused in words that say so.
    """
    if packed := next((name for mark, name in _PACKED if content.startswith(mark)), ""):
        raise TaskFileError(path, f"is {packed}-compressed; unpack it first")
    if content.startswith(_POINTER):
        raise TaskFileError(path, "is a Git LFS pointer in place of the file; fetch the file with `git lfs pull`")
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"0x{content[error.start]:02x}" if error.start < len(content) else "the end"
        raise TaskFileError(
            path, f"not valid {encoding.upper()} ({byte}); save the file as UTF-8", line=line
        ) from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise TaskFileError(path, "has a NUL character, so it is not UTF-8 text; save the file as UTF-8", line=line)
    return text


def read_text(path: Path) -> str:
    """The text of a file. Raises TaskFileError."""
    return decode(read_bytes(path), path)


def read_json(path: Path) -> Any:
    """The one JSON value of a file; a key that is given two values is an error. Raises TaskFileError."""
    return parse_json(read_text(path), path)


def parse_json(text: str, path: Path | str, first: int = 1) -> Any:
    """The JSON value in ``text``, which begins on line ``first`` of ``path``. Raises TaskFileError."""
    if not text.strip():
        raise TaskFileError(path, "is empty; a JSON value is expected", line=first)
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        ends = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        message = "ends in the middle of a JSON value" if ends else f"not valid JSON: {error.msg}, column {error.colno}"
        raise TaskFileError(path, message, line=first + error.lineno - 1) from error
    except ValueError as error:
        twice = _TWICE.fullmatch(str(error))
        if twice is None:
            raise TaskFileError(path, f"not valid JSON: {error}", line=first) from error
        line = first + text.count("\n", 0, _last(text, twice.group(1)))
        raise TaskFileError(path, "the key is given twice", line=line, key=twice.group(1)) from error


def read_jsonl(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, value) for each line that is not blank. Raises TaskFileError at the line that cannot be read, or if there is none."""
    lines = [(number, line) for number, line in enumerate(read_text(path).split("\n"), start=1) if line.strip()]
    if not lines:
        raise TaskFileError(path, "is empty; one JSON value a line is expected")
    for number, line in lines:
        yield number, parse_json(line, path, number)


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML file. Raises TaskFileError."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        words = str(error) or "nested too deeply"
        place = _AT_LINE.search(words)
        line = int(place.group(1)) if place and place.group(1) else text.count("\n") + 1 if place else None
        raise TaskFileError(path, f"not valid TOML: {_AT_LINE.sub('', words).strip()}", line=line) from error


def read_yaml(path: Path) -> Any:
    """The one document of a YAML file; a key that stands twice is an error. Raises TaskFileError."""
    import yaml

    text = read_text(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            return None
        _check_keys(node, path)
        value = yaml.SafeLoader("").construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"not valid YAML: {error.problem or error.context}"
        raise TaskFileError(path, message, line=mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
        raise TaskFileError(path, f"not valid YAML: {str(error).splitlines()[0]}", line=line) from error
    if too_deep(value):
        raise TaskFileError(path, f"nested more than {MAX_DEPTH} levels deep")
    return value


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header, each as a mapping; blank rows are left out. Raises TaskFileError."""
    reader = csv.reader(read_text(path).splitlines(keepends=True), strict=True)
    rows: list[dict[str, str]] = []
    header: list[str] | None = None
    try:
        for cells in reader:
            if not any(cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                if twice := next((name for name in header if header.count(name) > 1), None):
                    raise TaskFileError(path, "duplicate column", line=reader.line_num, key=twice)
            elif len(cells) != len(header):
                message = f"{len(cells)} cells, where the header has {len(header)}"
                raise TaskFileError(path, message, line=reader.line_num)
            else:
                rows.append(dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise TaskFileError(path, f"not valid CSV: {error}", line=reader.line_num) from error
    if header is None:
        raise TaskFileError(path, "is empty; a CSV file with a header is expected")
    return rows


def table(value: Any, path: Path | str, line: int | None = None) -> dict[str, Any]:
    """``value``, which must be an object with texts for keys. Raises TaskFileError."""
    if not isinstance(value, dict):
        raise TaskFileError(path, f"must hold keys and values, not {kind(value)}", line=line)
    wrong = next((key for key in value if not isinstance(key, str)), None)
    if wrong is not None:
        raise TaskFileError(path, f"the key {wrong!r} is {kind(wrong)}, not a text; put it in quotes", line=line)
    return value


def kind(value: Any) -> str:
    """What sort of JSON value this is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a text", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}")


def _last(text: str, key: str) -> int:
    """Where the key stands last."""
    return max((match.start() for match in re.finditer(re.escape(json.dumps(key)) + r"\s*:", text)), default=0)


def _check_keys(node: Any, path: Path) -> None:
    """Refuse keys that stand twice; a shared node is looked at once."""
    import yaml

    waiting, seen = [node], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, yaml.SequenceNode):
            waiting += one.value
        elif isinstance(one, yaml.MappingNode):
            known: set[tuple[str, str]] = set()
            for key, child in one.value:
                name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else ("", str(id(key)))
                if name in known:
                    raise TaskFileError(path, "the key is given twice", line=key.start_mark.line + 1, key=name[1])
                known.add(name)
                waiting.append(child)
