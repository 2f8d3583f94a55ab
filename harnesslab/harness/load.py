"""From files to a :class:`Harness`, with every mistake found at once and reported with file, line and key."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from harnesslab.errors import HarnessFileError
from harnesslab.harness.base import LAYERS, Intervention, Layer
from harnesslab.harness.context import Protocol
from harnesslab.harness.files import MANIFEST, check_place, decode, has_meaning, intervention_file, read_folder
from harnesslab.harness.kind import Kind, Params, When, brought_by, find_kind, known_kinds
from harnesslab.harness.provenance import digest, read_provenance
from harnesslab.harness.pyfile import load_python
from harnesslab.harness.yamlfile import read_yaml

Lines = Mapping[tuple[str | int, ...], int]
M = TypeVar("M", bound=Params)

FORMAT = 1
"""The newest format of ``harness.toml`` that this version reads."""


class PromptSpec(Params):
    """The ``[prompt]`` table: the base prompt and how much of the past the model sees."""

    system: str = Field(default="", max_length=100_000, description="the first paragraph of the system message")
    history: int = Field(default=4, ge=0, le=1000, description="past turns in the request")
    observation_chars: int = Field(
        default=6000, ge=100, description="characters of an observation before its middle is cut"
    )
    reply_chars: int = Field(default=400, ge=20, description="characters of an unreadable past reply")
    tools: bool = Field(
        default=True, description="in the text and json protocols, list the tools in the system message"
    )


class Manifest(Params):
    """``harness.toml``."""

    name: str = Field(min_length=1, max_length=100, description="the harness's name")
    format: Literal[1] = Field(default=1, description="format of this folder")
    protocol: Protocol = Field(default="text", description="how an action is written in a reply")
    prompt: PromptSpec = Field(default=PromptSpec(), description="the base prompt")


class Head(Params):
    """The top level of an intervention's YAML file; ``params`` are checked by the kind."""

    kind: str
    about: str = Field(default="", max_length=1000)
    when: When | None = None
    params: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Harness:
    """The parameter that is trained: a base prompt and interventions, checked and in a fixed order.

    Interventions are sorted by layer (contract, skill, action, regulation) and in a layer by file name.
    ``files`` are the bytes that it was loaded from, unknown files included; ``unconfined``: its Python runs in this process.
    """

    name: str
    protocol: Protocol = "text"
    prompt: PromptSpec = field(default_factory=PromptSpec)
    interventions: tuple[Intervention, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    unconfined: bool = False

    def __getitem__(self, name: str) -> Intervention:
        """The intervention ``layer/stem``. Raises KeyError with the names that exist."""
        for intervention in self.interventions:
            if intervention.name == name:
                return intervention
        names = ", ".join(intervention.name for intervention in self.interventions)
        raise KeyError(f"no intervention '{name}'; there are: {names or 'none'}")

    @classmethod
    def load(cls, path: Path | str, *, unconfined: bool = False) -> Harness:
        """The harness in a folder, such as one that ``Lab.export`` wrote. ``unconfined``: run its Python
        interventions in this process, with all its rights, instead of confined in one of their own.

        Raises HarnessFileError for the first mistake, with file, line and key.
        """
        return load_folder(path, unconfined=unconfined)

    @property
    def digest(self) -> str:
        """SHA-256 of its files, as :attr:`provenance` has it under ``harness``; it differs where a file was changed since."""
        return digest(self.files)

    @property
    def provenance(self) -> dict[str, Any]:
        """What an exported harness says of where it comes from: commit, environment, backbone, results. Empty for any other."""
        return read_provenance(self.files)

    def layer(self, layer: Layer) -> tuple[Intervention, ...]:
        """The interventions of one layer, in order."""
        return tuple(i for i in self.interventions if i.layer == layer)


def load_folder(folder: Path | str, *, unconfined: bool = False, trust: bool = False) -> Harness:
    """The harness in a folder; see :func:`load_harness`."""
    return load_harness(read_folder(folder), unconfined=unconfined, trust=trust)


def load_harness(files: Mapping[str, bytes], *, unconfined: bool = False, trust: bool = False) -> Harness:
    """The harness in ``files`` (relative POSIX path to bytes).

    Nothing in it is run: Python interventions run at work, each in a confined process. ``unconfined`` runs them at once and
    from then on in this process, with all its rights. ``trust`` has no effect any more: nothing in a harness needs it.
    Raises HarnessFileError for the first mistake, with file, line and key.
    """
    if MANIFEST not in files:
        raise HarnessFileError(MANIFEST, "not found; a harness is a folder with this file in it")
    manifest = read_manifest(decode(MANIFEST, files[MANIFEST]))
    interventions: list[Intervention] = []
    stems: dict[str, str] = {}
    for path in sorted(files, key=_order):
        check_place(path, files[path])
        if path == MANIFEST or not has_meaning(path):
            continue
        name = path.rpartition(".")[0]
        if name in stems:
            raise HarnessFileError(path, f"has the same name as {stems[name]}; rename one of them")
        stems[name] = path
        text = decode(path, files[path])
        interventions.append(
            load_python(path, text, unconfined=unconfined) if path.endswith(".py") else load_yaml(path, text)
        )
    bind(interventions)
    return Harness(manifest.name, manifest.protocol, manifest.prompt, tuple(interventions), dict(files), unconfined)


def load_yaml(path: str, text: str) -> Kind[Any]:
    """One intervention from the text of its file ``layer/stem.yaml``. Raises HarnessFileError."""
    data, lines = read_yaml(path, text)
    if not isinstance(data, dict):
        raise HarnessFileError(path, "must be a mapping with the key 'kind'", line=lines[()])
    data = {key: value for key, value in data.items() if value is not None or key not in ("when", "params", "about")}
    head = _validated(Head, data, path, lines, ())
    cls = find_kind(head.kind)
    line = lines.get(("kind",))
    if cls is None:
        raise HarnessFileError(
            path, f"unknown kind '{head.kind}'; {_hint(head.kind, known_kinds())}", line=line, key="kind"
        )
    layer = path.split("/", 1)[0]
    if layer not in cls.layers:
        message = f"the kind '{head.kind}' belongs in {' or '.join(f'{name}/' for name in cls.layers)}, not in {layer}/"
        raise HarnessFileError(path, message, line=line, key="kind")
    params = _validated(cls.Params, head.params, path, lines, ("params",))
    return cls(path.removesuffix(".yaml"), params, about=head.about, when=head.when)


def _hint(kind: str, known: Iterable[str]) -> str:
    if bringer := brought_by(kind):
        return f"it comes with {bringer}, which cannot be used here (the warning says why)"
    if close := difflib.get_close_matches(kind, known, n=1):
        return f"did you mean '{close[0]}'?"
    names = ", ".join(name + (f" (from {bringer})" if (bringer := brought_by(name)) else "") for name in sorted(known))
    return f"known kinds: {names}. Another one is known once the environment or package that brings it is installed"


def dump(intervention: Kind[Any]) -> str:
    """The YAML text of a loaded intervention; loading it again gives an equal one."""
    params = intervention.params.model_dump(mode="json", exclude_unset=True, by_alias=True)
    when = intervention.when.model_dump(mode="json", exclude_unset=True) if intervention.when else None
    return intervention_file(intervention.kind, params, about=intervention.about, when=when)


def _order(path: str) -> tuple[int, str]:
    layer = path.split("/", 1)[0]
    return (LAYERS.index(layer) if layer in LAYERS else -1, path)


def bind(interventions: Sequence[Intervention]) -> None:
    """Introduce the interventions of each class to each other; see :meth:`Intervention.bind`."""
    groups: dict[type[Intervention], list[Intervention]] = {}
    for intervention in interventions:
        groups.setdefault(type(intervention), []).append(intervention)
    for cls, members in groups.items():
        cls.bind(members)


def read_manifest(text: str) -> Manifest:
    """The text of a ``harness.toml``, checked. Raises HarnessFileError, with line and key."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"\(at line (\d+)", str(error))
        last = int(found[1]) if found else text.count("\n") + 1
        raise HarnessFileError(MANIFEST, f"not valid TOML: {error}", line=last) from error
    known = data.get("format", FORMAT)
    if isinstance(known, int) and known > FORMAT:
        message = f"format {known} is newer than this harnesslab knows ({FORMAT}); update harnesslab"
        raise HarnessFileError(MANIFEST, message, line=_toml_line(text, ("format",)), key="format")
    try:
        return _strictly(Manifest, data)
    except ValidationError as error:
        path, message = _first(error, Manifest, lambda loc: _toml_line(text, loc) or 1)
        line = _toml_line(text, path)
        raise HarnessFileError(MANIFEST, message, line=line, key=".".join(map(str, path))) from error


def _toml_line(text: str, path: tuple[str | int, ...]) -> int | None:
    """The line of a key in TOML; ``tomllib`` does not tell. None where it is not there."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.fullmatch(r"\s*\[([\w.\s-]+)\]\s*(?:#.*)?", line):
            table = tuple(part.strip() for part in header[1].split("."))
            if table == path:
                return number
        elif (key := re.match(r"\s*\"?([\w-]+)\"?\s*=", line)) and (*table, key[1]) == path:
            return number
    return None


def _validated(model: type[M], data: Any, path: str, lines: Lines, prefix: tuple[str, ...]) -> M:
    try:
        return _strictly(model, data)
    except ValidationError as error:
        loc, message = _first(error, model, lambda loc: _line(lines, (*prefix, *loc)))
        full = (*prefix, *loc)
        raise HarnessFileError(path, message, line=_line(lines, full), key=".".join(map(str, full))) from error


def _strictly(model: type[M], data: Any) -> M:
    """Validate strictly. By way of JSON, because strict Python input refuses a list where a tuple is meant."""
    return model.model_validate_json(json.dumps(data, default=str))


def _line(lines: Lines, path: tuple[str | int, ...]) -> int:
    """The line of the longest part of ``path`` that is in the file (a missing key is its parent's fault)."""
    while path not in lines and path:
        path = path[:-1]
    return lines.get(path, 1)


def _first(error: ValidationError, model: type[Params], line: Callable[[Any], int]) -> tuple[Any, str]:
    """Location and text of the topmost mistake; the locations of a union's members are cut off."""
    # A key that is not known comes before one that is missing: the one is often the other, misspelt.
    problems = sorted(
        error.errors(include_url=False),
        key=lambda problem: (problem["type"] == "missing", line(problem["loc"])),
    )
    problem = problems[0]
    loc, message = problem["loc"], problem["msg"]
    if problem["type"] == "extra_forbidden":
        fields = _fields(model, loc[:-1])
        close = difflib.get_close_matches(str(loc[-1]), fields, n=1)
        message = f"unknown key; did you mean '{close[0]}'?" if close else f"unknown key; known: {', '.join(fields)}"
    elif problem["type"] == "missing":
        message = "this key is required"
    elif problem["type"] not in ("regex", "value_error"):
        message = f"{message}, not {str(problem['input'])[:60]!r}"
    return loc, message.removeprefix("Value error, ")


def _fields(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """Names of the fields of the model that lies at ``loc`` below ``model``."""
    for part in loc:
        if not isinstance(part, str) or part not in model.model_fields:
            continue
        inner = [t for t in _members(model.model_fields[part].annotation) if isinstance(t, type)]
        model = next((t for t in inner if issubclass(t, BaseModel)), model)
    return [info.alias or name for name, info in model.model_fields.items()]


def _members(annotation: Any) -> list[Any]:
    """A type and everything inside its brackets."""
    return [annotation, *(m for arg in typing.get_args(annotation) for m in _members(arg))]
