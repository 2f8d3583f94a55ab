"""Examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(home).with_suffix("").parts).removesuffix(".__init__")
    for home in (ROOT, ROOT / "envs")
    for path in (home / ("harnesslab" if home == ROOT else "harnesslab_envs")).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8") and "tasks" not in path.parts
)


def test_an_example_that_is_wrong_is_found() -> None:
    assert "harnesslab" in MODULES
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda text: None).failed == 1


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0
