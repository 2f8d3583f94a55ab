"""What an exported harness says of where it comes from: one JSON file beside ``harness.toml``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from harnesslab.errors import HarnessFileError
from harnesslab.harness.files import MAX_BYTES, decode, has_meaning
from harnesslab.plainjson import loads

PROVENANCE = "provenance.json"
FORMAT = 1


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 of the files that harnesslab reads, by name and content; other files do not count."""
    found = hashlib.sha256()
    for path in sorted(filter(has_meaning, files)):
        found.update(f"{len(path.encode())} {len(files[path])} ".encode() + path.encode() + files[path])
    return f"sha256:{found.hexdigest()}"


def read_provenance(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The provenance of an exported harness; empty where there is none. Raises HarnessFileError for one that is damaged."""
    if PROVENANCE not in files:
        return {}
    text = decode(PROVENANCE, files[PROVENANCE][: MAX_BYTES + 1])
    try:
        found = loads(text)
    except ValueError as error:
        raise HarnessFileError(PROVENANCE, f"not valid JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise HarnessFileError(PROVENANCE, f"not the provenance of a harness in format {FORMAT}; export the lab again")
    return found
