"""The public names: typed, in one list, and enough to extend everything."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "strict_script.py"

MISTAKES = """import harnesslab as hl

hl.Judgement("-1", "the loss is a number")
hl.Trainer(callbacks=[print])
hl.Lab.open("lab").nothing()
"""


def test_type_checkers_see_the_names_that_are_there() -> None:
    tree = ast.parse(Path(hl.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen | {"__version__"} == set(hl.__all__)
    assert (Path(hl.__file__).parent / "py.typed").is_file()


def test_the_public_names_are_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    for name in set(hl.__all__) - {"__version__"}:
        # A whole package is described with all that it exports.
        assert f"harnesslab.{name}\n" in page or f"harnesslab.{hl._HOME[name]}\n" in page, name


def test_a_users_script_is_strictly_typed(tmp_path: Path) -> None:
    """Against the installed package: mypy runs in another folder, without our settings."""
    (tmp_path / "script.py").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    cache = str(ROOT / ".mypy_cache" / "users")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "script.py", "mistakes.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line.split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    assert errors == [["mistakes.py", line] for line in ("3", "4", "5")], done.stdout + done.stderr


def test_the_script_runs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, SCRIPT, tmp_path / "lab"], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[-2:] == ["1 promote", ""], done.stdout + done.stderr


class Three(hl.Criterion):
    def judge(self, pairs: Any) -> hl.Judgement:
        return hl.Judgement(-1, "always")


def test_a_criterion_of_three_lines_is_named_after_its_class(open_lab: Callable[..., Any]) -> None:
    estimator = hl.ManualEstimator(scan=False)
    estimator.add_text("contract/hint.yaml", "kind: prompt\nparams:\n  text: Go on.\n")
    trainer = hl.Trainer(open_lab(), hl.LLM.null(), estimator, Three(), settings={"progress": False})
    loss = trainer.evaluate(trainer.propose()[0])
    assert float(loss) == -1 and loss.verdict.criterion == "Three" and loss.verdict.why == "always"


def test_what_a_part_lacks_is_named(open_lab: Callable[..., Any]) -> None:
    class Nameless:
        def judge(self, pairs: Any) -> hl.Judgement:
            return hl.Judgement(0, "")

    with pytest.raises(hl.errors.ConfigError, match=r"criterion must be .*has no 'name'"):
        hl.Trainer(open_lab(), hl.LLM.null(), criterion=Nameless())  # type: ignore[arg-type]
