"""Effects over time: what each intervention of the baseline has done, ablation, and proposals to retire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError

RIGHT = {"contract/right.yaml": "kind: prompt\nparams:\n  text: Always walk right.\n"}
IDLE = {"contract/idle.yaml": "kind: reminder\nwhen:\n  observation: never-seen\nparams:\n  text: Hm.\n"}
HARM = {"contract/zharm.yaml": "kind: prompt\nparams:\n  text: Stop at once.\n"}


def walker(messages: Any) -> str:
    """Walks right where it is told so, and nowhere on a task of two rooms where it is told to stop."""
    said = " ".join(str(message["content"]) for message in messages)
    if "Always walk right" not in said:
        return "Action: left"
    return "Action: left" if "Stop at once" in said and "Room 1." in said else "Action: right"


def add(trainer: hl.Trainer, changes: dict[str, str]) -> None:
    path = next(iter(changes))
    layer, name = path.split("/")[0], path.rpartition(".")[0]
    trainer.accept(hl.Proposal(changes, layer, "prompt", name, "a test"), reason="a test")


@pytest.fixture
def trained(open_lab: Callable[..., hl.Lab]) -> hl.Trainer:
    made = hl.Trainer(lab=open_lab(), llm=hl.LLM.scripted(walker, name="walker"), settings={"progress": False})
    made.measure("gate")
    add(made, RIGHT)
    made.measure("gate")
    return made


def test_helped_hurt_and_fired_come_from_runs_that_differ_in_one_intervention(trained: hl.Trainer) -> None:
    row = trained.lab.effects()[0]
    assert (row["intervention"], row["on"], row["off"], row["fired"]) == ("contract/right", 8, 8, 8)
    assert (row["helped"], row["hurt"]) == (8, 0)
    assert 0 < row["low"] < row["points"] < row["high"] and row["P(helps)"] > 0.97
    add(trained, HARM)
    trained.measure("gate")
    rows = {row["intervention"]: row for row in trained.lab.effects()}
    assert (rows["contract/zharm"]["helped"], rows["contract/zharm"]["hurt"]) == (0, 6)
    assert rows["contract/zharm"]["points"] < 0 < rows["contract/right"]["points"]
    assert list(trained.lab.effects().to_frame()["intervention"]) == ["contract/right", "contract/zharm"]


def test_controls_other_models_and_sealed_runs_do_not_count(trained: hl.Trainer) -> None:
    before = repr(trained.lab.effects().rows)
    trained.measure("gate", llm=hl.LLM.random(0))
    trained.open_sealed(controls="all", seeds=1)
    assert repr(trained.lab.effects().rows) == before
    trained.measure("search", llm=hl.LLM.scripted(walker, name="other"))
    assert trained.lab.effects()[0]["on"] == 8 and "other" in trained.lab.effects().title
    assert repr(trained.lab.effects("walker").rows) == before


def test_another_version_of_an_intervention_is_not_it(trained: hl.Trainer) -> None:
    add(trained, {"contract/right.yaml": RIGHT["contract/right.yaml"].replace("Always", "Please! Always")})
    row = trained.lab.effects()[0]
    assert (row["on"], row["helped"]) == (0, 0)


def test_ablation_measures_without_each_and_retires_what_does_not_help(trained: hl.Trainer) -> None:
    add(trained, IDLE)
    add(trained, HARM)
    table = hl.ablate(trained.lab, progress=False)
    rows = {row["intervention"]: row for row in table}
    assert [rows[name]["retire"] for name in ("contract/right", "contract/zharm", "contract/idle")] == [
        False, True, True,
    ]  # fmt: skip
    right, harm, idle = (rows[name] for name in ("contract/right", "contract/zharm", "contract/idle"))
    assert (right["helped"], right["hurt"], right["with"], right["without"]) == (2, 0, 2, 0)
    assert (harm["helped"], harm["hurt"], harm["without"]) == (0, 6, 8)
    assert (idle["fired"], idle["with"], idle["without"]) == (0, 2, 2)
    assert {p.name for p in table.proposals} == {"contract/zharm", "contract/idle"}
    loss = trained.evaluate(next(p for p in table.proposals if p.name == "contract/zharm"))
    assert loss.verdict.gain == 6
    effects = {row["intervention"]: row for row in trained.lab.effects()}
    assert effects["contract/zharm"]["off"] > 8 and effects["contract/right"]["helped"] >= 8
    calls = trained.meter.usage().calls
    assert repr(hl.ablate(trained.lab, progress=False)) == repr(table) and trained.meter.usage().calls == calls


def test_ablation_takes_the_search_split_and_says_what_is_wrong(open_lab: Callable[..., hl.Lab]) -> None:
    lab = open_lab("other")
    with pytest.raises(ConfigError, match="no backbone is known"):
        hl.ablate(lab)
    with pytest.raises(ConfigError, match="search or the gate split"):
        hl.ablate(lab, hl.LLM.random(0), split="sealed")
    assert len(hl.ablate(lab, hl.LLM.random(0), progress=False)) == 0


def test_a_lab_without_records_has_effects_of_nothing(open_lab: Callable[..., hl.Lab]) -> None:
    assert len(open_lab().effects()) == 0
    made = hl.Trainer(lab=open_lab(), llm=hl.LLM.random(0), settings={"progress": False})
    add(made, RIGHT)
    row = made.lab.effects()[0]
    assert (row["on"], row["fired"], row["points"]) == (0, 0, 0.0)


def test_the_panel_shows_them_and_escapes(trained: hl.Trainer) -> None:
    panel = hl.panels.effects(trained)
    assert "contract/right" in panel.static() and "<img" in panel.static() and "contract/right" in panel.plain()
    with pytest.raises(ConfigError, match="effects takes a trainer or a lab"):
        hl.panels.effects(7)  # type: ignore[arg-type]


def test_looks_at_the_gate_survive_a_fresh_lab(trained: hl.Trainer, open_lab: Callable[..., hl.Lab]) -> None:
    assert len(trained.lab.looks()) == 0, "promoted without a measurement"
    trained.evaluate(hl.Proposal(HARM, "contract", "prompt", "contract/zharm", "x"))
    trained.evaluate(hl.Proposal(IDLE, "contract", "reminder", "contract/idle", "x"))
    assert len(trained.lab.looks()) == 2 and trained.lab.looks()[0]["backbone"] == "walker"
    trained.open_sealed(controls=[])
    trained.lab.close()
    fresh = open_lab(fresh=True)
    assert fresh.looks().title == "looks at the gate: 2, 2 in earlier labs"
    assert {row["lab"] for row in fresh.looks()} == {"lab.1"} and len(fresh.openings()) == 2
    fresh.close()
    again = open_lab(fresh=True)
    assert len(again.looks()) == 2 and {row["lab"] for row in again.looks()} == {"lab.1"}
    assert "split" in again.repo._core.git.text("notes", "--ref=harnesslab-sealed", "show", again.repo.root())
