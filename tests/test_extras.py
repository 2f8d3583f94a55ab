"""A plain install: what needs an extra says which one, before anything is played."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harnesslab.errors import ExtraMissing, HarnesslabError
from harnesslab.extras import comes_with

PLAIN = """
import sys

class Absent:
    "Hides the packages of the extra 'lab', as if they had not been installed."
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "pandas", "scipy", "statsmodels", "matplotlib", "ipywidgets"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import harnesslab as hl
from harnesslab.errors import HarnesslabError

lab = hl.Lab.open("lab", env="kitchen")
trainer = hl.Trainer(lab, hl.LLM.random(0), hl.MiningEstimator(), settings={"search": 2, "gate": 2, "sealed": 2, "budget": 2})
run = trainer.measure()
failures = trainer.diagnose(run)
"""
CALLS = (
    "trainer.open_sealed()", "trainer.probe()", "run.to_frame()", "failures.to_frame()", "lab.log().to_frame()",
    "hl.panels.failures(failures)", "hl.panels.curve(lab)", "hl.PairedTest()",
)  # fmt: skip


def test_each_call_names_the_extra(tmp_path: Path) -> None:
    tries = "".join(
        f"try:\n    {call}\n    print('nothing was missing')\nexcept HarnesslabError as error:\n    print(error)\n"
        for call in CALLS
    )
    program = f"{PLAIN}{tries}print(len(lab.openings()))\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *said, openings = done.stdout.splitlines()
    assert len(said) == len(CALLS)
    for call, words in zip(CALLS, said, strict=True):
        assert "pip install 'jupyter-harnesslab[lab]'" in words, f"{call}: {words}"
    assert openings == "0", "the sealed split stays shut where its table could not be made"


def test_the_error_is_an_import_error_as_well() -> None:
    with (
        pytest.raises(
            ImportError, match=r"the package nowhere_to_be_found, which comes with the extra 'dask'"
        ) as found,
        comes_with("dask"),
    ):
        import nowhere_to_be_found  # noqa: F401
    assert isinstance(found.value, HarnesslabError) and isinstance(found.value, ExtraMissing)


def test_our_own_mistakes_are_not_blamed_on_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"harnesslab\.nowhere"), comes_with("lab"):
        import harnesslab.nowhere  # noqa: F401
