"""A small image for tests, made from this system's own files: bash, coreutils and a Python. Nothing is pulled."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from harnesslab.errors import EnvironmentUnavailable
from harnesslab_envs.sandbox import Engine, EngineError, find_engine

PROGRAMS = """
bash sh env cat ls cp mv rm mkdir rmdir touch chmod chown ln head tail sort uniq wc cut tr seq sleep date stat id du dd
printf echo true false test tee basename dirname readlink pwd grep sed find tar gzip awk nohup setsid pgrep ps yes
"""
LEFT_OUT = {
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
    "distutils",
    "pydoc_data",
    "__pycache__",
}
MAX_BYTES = 96 << 20


def engine_or_skip() -> Engine:
    """The engine that answers; skips the test where none does."""
    try:
        return find_engine()
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))


def base_image(engine: Engine) -> str:
    """The name of the image; made where the engine does not have it yet. Skips the test where not even ``docker run``
    works: an engine can answer and have no runtime that fits this kernel."""
    files = _files()
    facts = sorted((name, file.stat().st_size, file.stat().st_mtime_ns) for name, file in files.items())
    tag = f"harnesslab-test:{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"
    try:
        engine.call("image", "inspect", "--format", "{{.Id}}", tag)
    except EngineError:
        archive = _archive(files)
        assert len(archive) < MAX_BYTES
        engine.call("import", "--change", "ENV PATH=/usr/bin:/bin", "-", tag, data=archive)
    try:
        engine.call("run", "--rm", "--network", "none", tag, "/bin/true")
    except EngineError as error:
        pytest.skip(f"{engine.program} answers, and cannot run a container: {error}")
    return tag


def _files() -> dict[str, Path]:
    found = [Path(path) for name in PROGRAMS.split() if (path := shutil.which(name, path="/usr/bin:/bin"))]
    python = Path("/usr/bin/python3")
    if not python.exists() or not Path("/bin/bash").exists():
        pytest.skip("The image for tests is made from /usr/bin/python3 and /bin/bash, which are not here.")
    library = Path("/usr/lib") / python.resolve().name
    modules = [
        file
        for file in library.rglob("*")
        if file.is_file()
        and not LEFT_OUT.intersection(file.relative_to(library).parts)
        and not file.relative_to(library).parts[0].startswith("config-")
    ]
    binaries = [*found, python, *(file for file in modules if file.suffix == ".so")]
    linked = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False).stdout
    libraries = [Path(path) for path in set(re.findall(r"(/\S+) \(0x", linked))]
    return {_under_usr(file): file.resolve() for file in (*found, python, *modules, *libraries)}


def _under_usr(file: Path) -> str:
    """The path in an image whose /bin and /lib are links into /usr."""
    return str(file.relative_to("/") if file.is_relative_to("/usr") else Path("usr") / file.relative_to("/"))


def _archive(files: dict[str, Path]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in ("tmp", "root", "etc", "var/tmp", "run"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder.endswith("tmp") else 0o755
            archive.addfile(entry)
        for link in ("bin", "lib", "lib64"):
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{link}"
            archive.addfile(entry)
        for name, text in (
            ("passwd", b"root:x:0:0::/root:/bin/bash\nplain:x:1000:1000::/tmp:/bin/bash\n"),
            ("group", b"root:x:0:\n"),
        ):
            entry = tarfile.TarInfo(f"etc/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
        for name, file in sorted(files.items()):
            archive.add(file, arcname=name, recursive=False)
    return packed.getvalue()
