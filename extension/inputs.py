"""A fingerprint of everything that the prebuilt extension is made from.

`jlpm build:prod` writes it into the build (`python inputs.py --write`); a test compares it, since the bytes of a
build differ from folder to folder while its inputs do not. `jlpm types` notes in the generated types which OpenAPI
document they were made from (`--schema`).
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "harnesslab" / "labextension"
STAMP = BUILT / "inputs.sha256"
DOCUMENT = HERE.parent / "harnesslab" / "server" / "openapi.yaml"
SCHEMA = HERE / "src" / "api" / "schema.ts"
INPUTS = ("src", "style", "schema", "package.json", "tsconfig.json", "yarn.lock")


def fingerprint() -> str:
    """SHA-256 over the names and contents of all inputs; line ends do not count."""
    digest = hashlib.sha256()
    for name in INPUTS:
        place = HERE / name
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                data = file.read_bytes().replace(b"\r\n", b"\n")
                digest.update(f"{file.relative_to(HERE).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def main() -> int:
    """`--write` stores the fingerprint, `--schema` what the types were made from; without it, the exit status says whether the build is fresh."""
    if sys.argv[1:] == ["--schema"]:
        made_from = hashlib.sha256(DOCUMENT.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        note = f"// Made by `make api` from harnesslab/server/openapi.yaml {made_from}\n"
        SCHEMA.write_text(note + SCHEMA.read_text(encoding="utf-8"), encoding="utf-8", newline="\n")
        return 0
    if sys.argv[1:] == ["--write"]:
        STAMP.write_text(fingerprint() + "\n", encoding="utf-8")
        return 0
    return 0 if STAMP.is_file() and STAMP.read_text(encoding="utf-8").strip() == fingerprint() else 1


if __name__ == "__main__":
    sys.exit(main())
