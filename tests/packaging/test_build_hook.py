"""The build hook says what is missing, before the hook behind it fails with a traceback. Needs neither hatchling nor a network."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest

HOOK = Path(__file__).resolve().parents[2] / "hatch_build.py"
INTERFACE = "hatchling.builders.hooks.plugin.interface"
T = TypeVar("T")


class Interface(Generic[T]):
    """As much of hatchling's class as a hook needs."""

    def __init__(self, root: str):
        self.root = root


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The hook, for a project in an empty folder, where no program is on PATH."""
    stand_in = ModuleType(INTERFACE)
    stand_in.BuildHookInterface = Interface  # type: ignore[attr-defined]
    parts = INTERFACE.split(".")
    for depth in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), ModuleType(parts[depth - 1]))
    monkeypatch.setitem(sys.modules, INTERFACE, stand_in)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    spec = importlib.util.spec_from_file_location("hatch_build", HOOK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.NodeNeeded(str(tmp_path))


def test_it_says_what_is_missing_and_what_to_do(hook: Any) -> None:
    with pytest.raises(SystemExit, match=r"harnesslab/labextension/package\.json is missing.*Install Node\.js"):
        hook.initialize("standard", {})


def test_it_is_silent_where_the_extension_is_built(hook: Any, tmp_path: Path) -> None:
    built = tmp_path / "harnesslab" / "labextension" / "package.json"
    built.parent.mkdir(parents=True)
    built.write_text("{}", encoding="utf-8")
    hook.initialize("standard", {})


def test_it_is_silent_where_node_can_build_it(hook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\n", encoding="utf-8")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(node.parent))
    hook.initialize("standard", {})
