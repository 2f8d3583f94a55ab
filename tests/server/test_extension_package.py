"""The built extension that is committed: fresh, small, for production, and of the package's version."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harnesslab._version import __version__

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = REPOSITORY / "harnesslab" / "labextension"
SOURCE = REPOSITORY / "extension"
LIMIT = 300_000
"""Bytes that the extension may have."""


@pytest.fixture(scope="module")
def inputs() -> ModuleType:
    """`extension/inputs.py`."""
    spec = importlib.util.spec_from_file_location("inputs", SOURCE / "inputs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_build_is_of_these_sources(inputs: ModuleType) -> None:
    stamp = inputs.STAMP.read_text(encoding="utf-8").strip()
    assert stamp == inputs.fingerprint(), "run `jlpm build:prod` in extension/ and commit harnesslab/labextension"


def test_the_version_is_that_of_the_package() -> None:
    assert read(SOURCE / "package.json")["version"] == __version__
    assert read(BUILT / "package.json")["version"] == __version__


def test_the_build_is_small_and_for_production() -> None:
    files = [file for file in BUILT.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < LIMIT
    assert not [file.name for file in files if file.suffix == ".map"]
    scripts = [file.read_text(encoding="utf-8") for file in (BUILT / "static").glob("*.js")]
    assert not any(re.search(r"^//# sourceMappingURL=", script, re.M) for script in scripts)


def test_codemirror_and_react_are_those_of_jupyterlab() -> None:
    shared = read(BUILT / "package.json")["jupyterlab"].get("sharedPackages", {})
    assert not [name for name, options in shared.items() if options.get("bundled")]
    licences = read(BUILT / "static" / "third-party-licenses.json")
    bundled = {package["name"] for package in licences["packages"]}
    assert bundled.isdisjoint({"@codemirror/state", "@codemirror/view", "@codemirror/language", "react", "react-dom"})
    assert "@codemirror/merge" in bundled


def test_the_shortcuts_collide_with_none_of_jupyterlab() -> None:
    jupyterlab = pytest.importorskip("jupyterlab.commands", reason="needs the 'lab' extra")
    ours = {" ".join(each["keys"]) for each in read(SOURCE / "schema" / "plugin.json")["jupyter.lab.shortcuts"]}
    theirs: set[str] = set()
    for schema in (Path(jupyterlab.get_app_dir()) / "schemas").rglob("*.json"):
        theirs |= {" ".join(each.get("keys", [])) for each in read(schema).get("jupyter.lab.shortcuts", [])}
    assert len(theirs) > 50, "JupyterLab's own shortcuts were found"
    assert ours and ours.isdisjoint(theirs)


def test_every_word_can_be_translated() -> None:
    """Text between tags in the components goes through `trans`."""
    for file in (SOURCE / "src").rglob("*.tsx"):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read_text(encoding="utf-8"), flags=re.S)
        bare = re.findall(r">\s*([A-Z][a-z]+[^<>{}=;()]*)</", text)
        assert bare == [], file.name
