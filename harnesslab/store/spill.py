"""Episodes that the database would not take, as files, until it takes them again."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harnesslab.store.codec import to_json


def write(folder: Path, run_id: str, summary: Mapping[str, Any], trace: Sequence[Mapping[str, Any]]) -> Path:
    """Write one episode to a file of its own, safely; raises `OSError` where that is not possible either."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run_id}-{secrets.token_hex(6)}.json"
    scratch = path.with_suffix(".new")
    try:
        with scratch.open("w", encoding="utf-8") as file:
            file.write(to_json({"run_id": run_id, "summary": summary, "trace": trace}))
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
    return path


def read_all(folder: Path) -> Iterator[tuple[Path, str, dict[str, Any], list[dict[str, Any]]]]:
    """The spilled episodes, oldest name first: file, run, summary, trace. A damaged file is renamed to `.bad`."""
    try:
        paths = sorted(folder.glob("*.json"))
    except OSError:
        return
    for path in paths:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            run_id, summary, trace = data["run_id"], data["summary"], data["trace"]
        except FileNotFoundError:
            continue  # another process imported it
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            with contextlib.suppress(OSError):
                path.rename(path.with_suffix(".bad"))
            continue
        yield path, run_id, summary, trace
