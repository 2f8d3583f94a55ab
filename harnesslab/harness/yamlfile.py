"""Read one YAML file into plain values and remember the line of each.

Safer and plainer than ``yaml.safe_load``: keys are strings as written (YAML 1.1 would read the key ``on``
as true), only true/false are booleans, dates stay text, and duplicate keys, aliases, tags and deep nesting are
errors with a line. Aliases are refused because a few lines of them expand to gigabytes.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import yaml

from harnesslab.errors import HarnessFileError

Path: TypeAlias = "tuple[str | int, ...]"
"""Keys and indices that lead from the top of a document to a value."""

MAX_DEPTH = 30
"""Levels of nesting that a file may have."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = yaml.SafeDumper
_IMPLICIT = {"null", "bool", "int", "float", "str", "seq", "map", "timestamp", "merge", "value"}
"""Tags that YAML gives by itself to what is written without a tag."""
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_BREAKS = "\r\x85\u2028\u2029"
"""Characters that YAML folds into a line break unless they are escaped."""
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def read_yaml(name: str, text: str) -> tuple[Any, dict[Path, int]]:
    """The document in ``text`` and, for each path in it, the line of its key (from 1).

    Raises HarnessFileError, naming ``name`` and the line, for anything but one plain document.
    """
    try:
        _check_events(name, text)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        raise HarnessFileError(name, f"not valid YAML: {error.problem or error.context}", line=line) from error
    except yaml.YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else None
        raise HarnessFileError(name, f"not valid YAML: {error}".split("\n")[0], line=line) from error
    if node is None:
        raise HarnessFileError(name, "the file is empty", line=1)
    lines: dict[Path, int] = {(): node.start_mark.line + 1}
    return _value(name, node, (), lines), lines


def _check_events(name: str, text: str) -> None:
    """Refuse, without building anything, what could explode while it is built."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=_LOADER):
        mark = event.start_mark
        line = mark.line + 1 if mark is not None else None
        if isinstance(event, yaml.AliasEvent):
            raise HarnessFileError(name, "YAML aliases (*name) are not allowed; write the value out", line=line)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise HarnessFileError(name, "more than one YAML document; write one intervention per file", line=line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise HarnessFileError(name, f"nested deeper than {MAX_DEPTH} levels", line=line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _value(name: str, node: Any, path: Path, lines: dict[Path, int]) -> Any:
    line = node.start_mark.line + 1
    if node.tag.removeprefix("tag:yaml.org,2002:") not in _IMPLICIT:
        raise HarnessFileError(name, f"YAML tags ({node.tag}) are not allowed", line=line)
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            lines[*path, index] = child.start_mark.line + 1
        return [_value(name, child, (*path, index), lines) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, child in node.value:
            key_line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise HarnessFileError(name, "keys must be plain words", line=key_line)
            key = key_node.value
            if key in result:
                raise HarnessFileError(name, "duplicate key", line=key_line, key=key)
            lines[*path, key] = key_line
            result[key] = _value(name, child, (*path, key), lines)
        return result
    return node.value if node.style else scalar(node.value)


def scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted YAML scalar means here."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) < 20:
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


class _Dumper(_DUMPER):
    """Block style for text of several lines; quotes whatever an unquoted scalar would turn into something else."""

    def represent_text(self, text: str) -> Any:
        """Choose the style of one string."""
        if any(char in text for char in _BREAKS):
            return self.represent_scalar("tag:yaml.org,2002:str", text, style='"')
        if "\n" in text:
            return self.represent_scalar("tag:yaml.org,2002:str", text, style="|")
        style = None if isinstance(scalar(text), str) else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def ignore_aliases(self, data: Any) -> bool:
        """Write every value out; the reader refuses aliases."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        """Indent lists below their key."""
        return super().increase_indent(flow, False)


_Dumper.add_representer(str, _Dumper.represent_text)


def write_yaml(value: Any) -> str:
    """``value`` (plain JSON values) as YAML that :func:`read_yaml` reads back unchanged; keys keep their order."""
    return str(
        yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, default_flow_style=False)
    )
