"""Plug-ins of installed packages: used by name; a broken one is named, left out, and breaks nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BrokenPlugin, ConfigError, EstimatorFault
from harnesslab.harness import kind as kinds
from harnesslab.harness import known_kinds, load_harness

CODE = '''
import harnesslab as hl
from harnesslab.harness import Kind, Params

class Polite(hl.ManualEstimator):
    def __init__(self):
        super().__init__(scan=False)
        self.add_text("contract/please.yaml", "kind: prompt\\nparams:\\n  text: Please.\\n", about="Say please")

def mine(view):
    yield hl.Idea("prompt", "contract", "hurry", "Say hurry", (hl.Variant({"text": "Hurry."}),), ("trajectory degeneration",), 0.5,
                  tuple(hl.Clue(e, 0, "it was slow") for e in view.failed))

class ShoutParams(Params):
    text: str

class Shout(Kind[ShoutParams]):
    """Says it loudly."""

    kind = "shout"
    layers = ("contract",)
    Params = ShoutParams

    def shape(self, context, draft):
        return draft.add(after=self.params.text.upper())

def raises():
    raise RuntimeError("no luck")

class Propless:
    pass

number = 7
'''
BROKEN = {
    "no such module": ("missing_module_of_ours:thing", "missing_module_of_ours"),
    "no such name": ("plug:missing", "missing"),
    "a module that raises": ("plug_raises:thing", "ZeroDivisionError"),
    "a module that exits": ("plug_exits:thing", "SystemExit"),
    "a module with a mistake": ("plug_mistake:thing", "SyntaxError"),
    "a number": ("plug:number", "int"),
}
GROUPS: dict[str, tuple[Callable[[], Any], str]] = {
    "harnesslab.estimators": (hl.estimators, "mining"),
    "harnesslab.miners": (lambda: hl.MiningEstimator().miners, "loop_breaker"),
    "harnesslab.kinds": (known_kinds, "prompt"),
}


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Installs a package ``plug`` with the entry points given, as pip would leave it."""
    before, known = set(sys.modules), known_kinds()

    def make(folder: str = "site", **points: tuple[str, str]) -> Path:
        site = tmp_path / folder
        info = site / "plug-1.0.dist-info"
        info.mkdir(parents=True)
        for name, text in {
            "plug": CODE,
            "plug_raises": "1 / 0",
            "plug_exits": "exit('bye')",
            "plug_mistake": "def",
        }.items():
            (site / f"{name}.py").write_text(text, encoding="utf-8")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n", encoding="utf-8")
        lines = [f"[{group}]\n{name} = {value}\n" for name, (group, value) in points.items()]
        (info / "entry_points.txt").write_text("".join(lines), encoding="utf-8")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setattr(kinds, "_loaded", False)
        return site

    yield make
    kinds._KINDS.clear()
    kinds._KINDS.update(known)
    for name in set(sys.modules) - before:
        if name.startswith("plug"):
            del sys.modules[name]


def test_an_estimator_by_name(install: Callable[..., Path], open_lab: Callable[..., Any]) -> None:
    install(polite=("harnesslab.estimators", "plug:Polite"))
    assert list(hl.estimators()) == ["manual", "mining", "queue", "polite"]
    trainer = hl.Trainer(open_lab(), hl.LLM.null(), "polite", settings={"progress": False})
    assert [proposal.name for proposal in trainer.propose()] == ["contract/please"]


def test_a_miner_is_asked_beside_the_built_in_ones(install: Callable[..., Path], open_lab: Callable[..., Any]) -> None:
    install(hurry=("harnesslab.miners", "plug:mine"))
    trainer = hl.Trainer(open_lab(), hl.LLM.null(), "mining", settings={"progress": False})
    assert "contract/hurry" in [proposal.name for proposal in trainer.propose()]
    assert len(hl.MiningEstimator().miners) > 15


def test_a_kind_in_a_harness(install: Callable[..., Path]) -> None:
    install(shout=("harnesslab.kinds", "plug:Shout"))
    files = {"harness.toml": b'name = "x"', "contract/loud.yaml": b"kind: shout\nparams:\n  text: hear\n"}
    assert load_harness(files).interventions[0].kind == "shout"


@pytest.mark.parametrize("group", list(GROUPS))
@pytest.mark.parametrize("what", list(BROKEN))
def test_a_broken_one_is_named_and_left_out(install: Callable[..., Path], group: str, what: str) -> None:
    names, built_in = GROUPS[group]
    value, told = BROKEN[what]
    install(bad=(group, value))
    with pytest.warns(BrokenPlugin) as seen:
        found = names()
    assert built_in in found and "bad" not in found
    assert len(seen) == 1
    sentence = str(seen[0].message)
    assert "\n" not in sentence and f"'bad = {value}' of the package plug" in sentence and told in sentence


@pytest.mark.parametrize("group", list(GROUPS))
def test_the_name_of_a_built_in_one_is_taken(install: Callable[..., Path], group: str) -> None:
    names, built_in = GROUPS[group]
    made = {"harnesslab.estimators": "Polite", "harnesslab.miners": "mine", "harnesslab.kinds": "Shout"}
    before = names()[built_in]
    install(**{built_in: (group, f"plug:{made[group]}")})
    if group == "harnesslab.kinds":
        assert names()["shout"]  # a kind is known by its own name, whatever the entry point says
        return
    with pytest.warns(BrokenPlugin, match="built-in"):
        assert names()[built_in] is before


@pytest.mark.parametrize("group", list(GROUPS))
def test_a_package_inside_a_lab_is_not_run(install: Callable[..., Path], group: str, tmp_path: Path) -> None:
    site = install("lab", bad=(group, "plug_raises:thing"))
    (site / "harness.toml").write_text('name = "x"', encoding="utf-8")
    (site / ".git").mkdir()
    with pytest.warns(BrokenPlugin, match="part of the lab .*not run"):
        GROUPS[group][0]()
    assert "plug_raises" not in sys.modules


def test_nothing_is_loaded_by_import(install: Callable[..., Path]) -> None:
    import subprocess

    site = install(bad=("harnesslab.estimators", "plug_exits:thing"), worse=("harnesslab.kinds", "plug_raises:thing"))
    program = (
        "import sys, harnesslab as hl; [getattr(hl, name) for name in hl.__all__]; print('plug_exits' in sys.modules)"
    )
    environment = {"PYTHONPATH": str(site), "PYTHONWARNINGS": "error", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        ("plug:raises", EstimatorFault, "'odd' could not be made: RuntimeError: no luck"),
        ("plug:Propless", EstimatorFault, "'odd' is a Propless without a method 'propose'"),
    ],
)
def test_an_estimator_that_cannot_be_made(
    install: Callable[..., Path], open_lab: Callable[..., Any], value: str, error: type[Exception], told: str
) -> None:
    install(odd=("harnesslab.estimators", value))
    with pytest.raises(error, match=told):
        hl.Trainer(open_lab(), hl.LLM.null(), "odd")


def test_an_unknown_name_lists_the_known_ones(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    for given in ({"estimator": "minning"}, {"config_path": tmp_path / "train.yaml"}):
        (tmp_path / "train.yaml").write_text("estimator: minning\n", encoding="utf-8")
        with pytest.raises(ConfigError, match="unknown estimator 'minning'; known are manual, mining, queue"):
            hl.Trainer(open_lab(), hl.LLM.null(), **given)  # type: ignore[arg-type]


def test_the_file_names_an_estimator(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text("estimator: mining\n", encoding="utf-8")
    trainer = hl.Trainer(open_lab(), hl.LLM.null(), config_path=tmp_path / "train.yaml")
    assert isinstance(trainer.estimator, hl.MiningEstimator)
