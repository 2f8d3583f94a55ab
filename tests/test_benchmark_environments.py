"""The benchmark of environments: options in names, episodes kept as they end, and the row made of them."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from harnesslab.errors import ConfigError


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/environments.py, which is a script beside others."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    return importlib.import_module("environments")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("tables", ("tables", {})),
        ("tau2:domain=retail", ("tau2", {"domain": "retail"})),
        ("agentdojo:attack=true,max_steps=5", ("agentdojo", {"attack": True, "max_steps": 5})),
        ("package.module:callable", ("package.module:callable", {})),
        ("package.module:callable:data=/a b", ("package.module:callable", {"data": "/a b"})),
    ],
)
def test_options_stand_behind_the_name(bench: ModuleType, name: str, parts: tuple[str, dict[str, object]]) -> None:
    assert bench.options_of(name) == parts


@pytest.mark.parametrize("name", ["tau2:domain=retail,", "tau2:=x"])
def test_options_without_a_value(bench: ModuleType, name: str) -> None:
    with pytest.raises(ConfigError, match="no option: write"):
        bench.options_of(name)


def test_it_goes_on_where_it_was_cut_off(bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel, file = bench.Panel("tables", 2, ("gate",)), tmp_path / "episodes.jsonl"
    for seed in bench.HASH_SEEDS:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        bench.fill(panel, file)
    whole = file.read_text("utf-8").splitlines()
    assert len(whole) == 8
    # Cut in the middle of the last line, as a kill does.
    file.write_text("\n".join([*whole[:-1], whole[-1][:40]]), "utf-8")
    bench.fill(panel, file)
    records = bench.read(file)
    assert len(records) == 8
    assert [json.loads(line)["task"] for line in file.read_text("utf-8").splitlines()[:7]] == [
        json.loads(line)["task"] for line in whole[:7]
    ]
    environment = panel.load()
    names = [f"{task.split} {task.id}" for task in panel.tasks(environment)]
    row, remarks = bench.summary(panel, environment.version, "24 / 24 / 24", names, records)
    assert len(row) == len(bench.HEAD) and remarks == []
    assert row[3:7] == ["first 2 of gate", "2/2", "0/2", "yes"]


def test_what_failed_and_what_differed_is_named(bench: ModuleType) -> None:
    blank = bench.Record("x", "1", "1", "gate a", "oracle", True, "same", "", 1.0, (2.0,), 30.0)
    records = [
        replace(blank, hash_seed=seed, task=task, agent=agent, solved=agent == "oracle")
        for seed in bench.HASH_SEEDS
        for task in ("gate a", "gate b")
        for agent in ("oracle", "null")
    ]
    records[-2] = replace(records[-2], solved=False, digest="other", broken="step raised X\nTraceback")
    row, remarks = bench.summary(
        bench.Panel("x"), "1", "0 / 2 / 0", ["gate a", "gate b"], {record.key(): record for record in records}
    )
    assert row[3:] == ["all", "2/2", "0/2", "no: 1 of 2 tasks differ", "1.00", "2.00", "30"]
    assert remarks == ["not solved in process 2 only: gate b step raised X", "differs: gate b"]


def test_floors_of_an_environment(bench: ModuleType) -> None:
    row = bench.floors_row(bench.Panel("tables", splits=("sealed",)))
    assert len(row) == len(bench.FLOORS)
    assert row[:4] == ["`tables`", "sealed", "24/24", "0/24"] and row[5:7] == ["n/a", "1/24"]
    assert row[7] == '`commit_final_answer({"answers": ["4"]})`'
