"""Files of ours that cannot be read are kept under another name, so that they stop nobody and nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path


def set_aside(path: Path) -> Path | None:
    """Rename `path` to the first free `NAME.bad`, `NAME.bad.1`, ...; None where that is not possible."""
    number = 0
    while os.path.lexists(target := path.with_name(f"{path.name}.bad" + (f".{number}" if number else ""))):
        number += 1
    try:
        return path.rename(target)
    except OSError:
        return None
