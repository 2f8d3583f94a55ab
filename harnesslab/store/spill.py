"""Episodes that the database would not take, as files, until it takes them again."""

from __future__ import annotations

import json
import re
import secrets
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harnesslab.store import ownfiles
from harnesslab.store.codec import to_json

MAX_BYTES = 200_000_000
"""A larger file is not read: an episode with all its requests has a few megabytes."""


def write(folder: Path, run_id: str, summary: Mapping[str, Any], trace: Sequence[Mapping[str, Any]]) -> Path:
    """Write one episode to a file of its own, safely; raises `OSError` where that is not possible either."""
    # The run's id may have come with somebody else's database.
    name = f"{re.sub('[^0-9A-Za-z]', '_', run_id)[:40]}-{secrets.token_hex(6)}.json"
    data = to_json({"run_id": run_id, "summary": summary, "trace": trace}).encode("utf-8")
    ownfiles.write(folder.parent, f"{folder.name}/{name}", data)
    return folder / name


class Spilled(NamedTuple):
    """One episode that waits in a file."""

    path: Path
    run_id: str
    summary: dict[str, Any]
    trace: list[dict[str, Any]]


def waiting(folder: Path) -> list[Path]:
    """The files with spilled episodes, by name."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(".json"))
    except OSError:
        return []


def read(path: Path) -> Spilled:
    """The episode in one file; FileNotFoundError where it is gone, OSError or ValueError where it cannot be one."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("not a plain file")
    if found.st_size > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES // 1_000_000} MB")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    run_id, summary, trace = (
        (data.get(name) for name in ("run_id", "summary", "trace")) if isinstance(data, dict) else (None,) * 3
    )
    if not isinstance(run_id, str) or not isinstance(summary, dict) or not isinstance(trace, list):
        raise ValueError("not an episode")
    facts = (summary.get(name, {}) for name in ("fired", "extra"))
    if not all(isinstance(each, dict) for each in (*trace, *facts)):
        raise ValueError("not an episode")
    return Spilled(path, run_id, summary, trace)
