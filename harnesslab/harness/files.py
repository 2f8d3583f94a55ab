"""The files of a harness: which of them mean something, and how they are read and written.

A harness is a mapping from relative POSIX path to bytes; the git store hands out the same form. Files that mean
nothing to harnesslab (README, learning.md, .gitignore) are kept and ignored.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harnesslab.errors import HarnessFileError
from harnesslab.harness.base import LAYERS
from harnesslab.harness.yamlfile import write_yaml

MANIFEST = "harness.toml"
MAX_BYTES = 256 * 1024
"""Size that a file with a meaning may have; other files larger than that are left out by :func:`read_folder`."""
_SKIPPED = {"__pycache__", "node_modules"}
MEANT = f"{MANIFEST} and .yaml or .py files in {', '.join(f'{layer}/' for layer in LAYERS)}"
"""The files with a meaning, in words."""


def read_folder(folder: Path | str) -> dict[str, bytes]:
    """The files of a harness folder. Folders with a dot (``.git``, ``.harnesslab``) and links are left out.

    Raises HarnessFileError where the folder has no ``harness.toml`` or a file with a meaning cannot be read.
    """
    root = Path(folder)
    if not (root / MANIFEST).is_file():
        raise HarnessFileError(root / MANIFEST, "not found; a harness is a folder with this file in it")
    files: dict[str, bytes] = {}
    for base, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(names):
            path = Path(base, name)
            relative = path.relative_to(root).as_posix()
            data = _read(path, relative)
            if data is not None:
                files[relative] = data
    return files


def _read(path: Path, relative: str) -> bytes | None:
    meant = has_meaning(relative)
    try:
        info = path.lstat()
        if stat.S_ISREG(info.st_mode) and info.st_size <= MAX_BYTES:
            return path.read_bytes()
    except OSError as error:
        if meant:
            raise HarnessFileError(relative, f"cannot be read: {error.strerror}") from error
        return None
    if meant and not stat.S_ISREG(info.st_mode):
        raise HarnessFileError(relative, "must be a regular file, not a link or a device")
    if meant:
        raise HarnessFileError(relative, f"has {info.st_size} bytes; at most {MAX_BYTES} are allowed")
    return None


def has_meaning(path: str) -> bool:
    """Whether harnesslab reads this file: the manifest, and YAML or Python directly in a layer folder. Hidden files are
    those of editors."""
    folder, _, name = path.rpartition("/")
    return path == MANIFEST or (folder in LAYERS and name.endswith((".yaml", ".py")) and not name.startswith("."))


def why_not(path: str) -> str:
    """Why a file is not part of a harness, where its path looks as if somebody had meant it to be; else empty."""
    try:
        check_place(path, b"")
    except HarnessFileError as error:
        return str(error).removeprefix(f"{path}: ")
    return ""


def check_changes(paths: Iterable[str]) -> None:
    """Refuse to change anything but the files of a harness. Raises HarnessFileError."""
    for path in paths:
        if not has_meaning(path):
            raise HarnessFileError(path, why_not(path) or f"not a file of a harness; a proposal changes {MEANT}")


def decode(path: str, data: bytes) -> str:
    """The text of a file with a meaning. Raises HarnessFileError for too many bytes and for bytes that are not UTF-8."""
    if len(data) > MAX_BYTES:
        raise HarnessFileError(path, f"has {len(data)} bytes; at most {MAX_BYTES} are allowed")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise HarnessFileError(path, "not UTF-8 text; save the file as UTF-8", line=line) from error


def check_place(path: str, data: bytes) -> None:
    """Refuse a file that looks like an intervention but lies where nothing would read it."""
    parts = path.split("/")
    if parts[0].startswith(".") or not path.endswith((".yaml", ".yml")):
        return
    folders = ", ".join(f"{layer}/" for layer in LAYERS)
    if parts[0] in LAYERS and len(parts) > 1:
        if len(parts) == 2 and path.endswith(".yml"):
            raise HarnessFileError(path, "interventions end in .yaml; rename the file")
        if len(parts) > 2:
            raise HarnessFileError(path, f"interventions belong directly in {parts[0]}/, not in a folder below it")
        return
    close = difflib.get_close_matches(parts[0].lower(), LAYERS, n=1, cutoff=0.7) if len(parts) > 1 else []
    if close:
        raise HarnessFileError(path, f"unknown layer '{parts[0]}'; did you mean {close[0]}/? The layers are {folders}")
    if len(parts) <= 2 and re.search(rb"^kind[ \t]*:", data, re.MULTILINE):
        raise HarnessFileError(path, f"an intervention must be in the folder of its layer: {folders}")


def intervention_file(
    kind: str, params: Mapping[str, Any], *, about: str = "", when: Mapping[str, Any] | None = None
) -> str:
    """The YAML text of an intervention: keys in a fixed order, block style for text of several lines."""
    content: dict[str, Any] = {"kind": kind}
    if about:
        content["about"] = about
    if when:
        content["when"] = dict(when)
    if params:
        content["params"] = dict(params)
    return write_yaml(content)
