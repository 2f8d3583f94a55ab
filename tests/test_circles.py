"""No module of the package is part of a circle of imports, imports for types alone and imports in functions included."""

from __future__ import annotations

import graphlib
import importlib
from pathlib import Path

import grimp
import pytest


def circle(package: str) -> list[str]:
    """The modules of one circle, or nothing. The package's own ``__init__`` names the others for users and is left out."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=False, cache_dir=None)
    modules = sorted(graph.modules - {package})
    imported = {module: graph.find_modules_directly_imported_by(module) - {package} for module in modules}
    try:
        graphlib.TopologicalSorter(imported).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle_of_imports() -> None:
    assert not circle("harnesslab")


@pytest.mark.parametrize(
    "back",
    [
        "from {0}.one import One",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {0}.one import One",
        "def later():\n    from {0} import one",
    ],
    ids=["plain", "for types alone", "in a function"],
)
def test_a_circle_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: str) -> None:
    name = f"circular_{abs(hash(back))}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("", encoding="utf-8")
    (folder / "one.py").write_text(f"from {name} import two\nclass One: ...\n", encoding="utf-8")
    (folder / "two.py").write_text(back.format(name) + "\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert {f"{name}.one", f"{name}.two"} == set(circle(name))
