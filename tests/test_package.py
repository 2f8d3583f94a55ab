"""The package as a whole: quick to import, one version, arrows in one direction, nothing of this machine in it."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import harnesslab as hl

ROOT = Path(__file__).parent.parent


def test_import_is_quick_and_brings_no_heavy_package() -> None:
    program = (
        "import sys; before = set(sys.modules); import harnesslab; "
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    # CPU time, best of three: the wall clock of a shared machine says little.
    assert min(seconds) < 0.5
    heavy = {
        "pandas",
        "numpy",
        "openai",
        "matplotlib",
        "ipywidgets",
        "scipy",
        "git",
        "xllamacpp",
        "pydantic",
    }
    assert not heavy & set(json.loads(done.stdout.replace("'", '"')))


def test_every_public_name_is_there() -> None:
    for name in hl.__all__:
        assert getattr(hl, name) is not None, name
    with pytest.raises(AttributeError, match="Trainr"):
        hl.Trainr  # noqa: B018
    assert set(hl.__all__) <= set(dir(hl))


def test_there_is_one_version() -> None:
    package = ROOT / "extension" / "package.json"
    assert json.loads(package.read_text(encoding="utf-8"))["version"] == hl.__version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dynamic"] == ["version"]


def test_modules_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in ("harnesslab", "envs")
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert not long


def test_the_readme_names_what_exists() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", readme, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        assert (ROOT / link).exists(), link
    for folder in re.findall(r"^\| `([a-z]+)/`", readme, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder


def test_the_library_names_no_benchmark() -> None:
    """What belongs to one environment lives with it; ``kitchen`` and ``tables`` are words of examples."""
    folders = (path.name for path in (ROOT / "envs" / "harnesslab_envs").iterdir() if (path / "__init__.py").is_file())
    names = {name for folder in folders for name in (folder, folder.replace("_", "-"))} - {
        "kitchen",
        "sandbox",
        "terminal",
    }
    assert {"dbbench", "alfworld", "tau2", "agentbench-os"} <= names
    found = re.compile(rf"(?i)\b({'|'.join(sorted(names))}|agentbench|bfcl|swe-?bench|webarena)\b")
    files = [file for file in (ROOT / "harnesslab").rglob("*.py") if "labextension" not in file.parts]
    assert [f"{file.name}: {hit[0]}" for file in files if (hit := found.search(file.read_text(encoding="utf-8")))] == []
