"""The transfer matrix: measured as the training was, one row whatever fails, each model told apart, resumed and not replayed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm import Completion
from harnesslab.trainer import latest
from harnesslab.trainer.transfer import model_names
from tests.conftest import always
from tests.trainer.test_trainer import RIGHT, obedient, trainer
from tests.worlds import CorridorWorld

RIGHT_FILE = {"contract/right.yaml": RIGHT}


class Model:
    """A backbone that goes right once told so, with any identity, that fails when asked to."""

    constrains = False

    def __init__(self, identity: Mapping[str, Any] | None = None, fail: str = ""):
        self.identity = dict(identity or {"model": "m"})
        self.fail, self.calls, self.systems = fail, 0, list[str]()

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        self.calls += 1
        if self.fail:
            raise BackboneError(f"{self.fail}", cause=self.fail)
        self.systems.append(request.messages[0]["content"])
        return Completion(obedient(request.messages), prompt_tokens=1, completion_tokens=1, model="m")


class OtherWorld(CorridorWorld):
    """Another environment, with a starter of its own."""

    name = "other"

    def __init__(self, folder: Path, **options: Any):
        super().__init__(**options)
        self.folder = folder / "other-starter"
        self.folder.mkdir(exist_ok=True)
        (self.folder / "harness.toml").write_text(
            'name = "other"\nformat = 1\nprotocol = "text"\n[prompt]\nsystem = "You are elsewhere."\n', encoding="utf-8"
        )

    def starter(self) -> Path:
        return self.folder


@pytest.fixture(autouse=True)
def _new_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """No trainer of another test is the latest one."""
    monkeypatch.setattr(latest, "_latest", None)


def trained(lab: Any, llm: Any = None, **settings: Any) -> hl.Trainer:
    made = trainer(lab, RIGHT, llm=llm, **settings)
    for loss in made.epochs(1):
        loss.backward()
        made.optimizer.step()
    return made


SETTINGS: dict[str, Any] = {
    "repeats": 3, "budget": 4, "seed": 7, "families": ("odd",), "leave_out": ("gate-0",), "tolerance": 1, "gate": 2,
}  # fmt: skip


@pytest.mark.parametrize("kernel", ["the same", "a new one", "another lab's trainer came later"])
def test_the_measurement_is_that_of_the_training(open_lab: Callable[..., Any], kernel: str) -> None:
    lab = open_lab()
    made = trained(lab, **SETTINGS)
    identity = made.measure("gate").identity
    if kernel == "a new one":
        latest._latest = None
        lab.close()
        lab = open_lab()
    elif kernel.startswith("another"):
        later = trainer(open_lab("second"))
        assert latest.latest() is later
    model = Model()
    table = hl.transfer(lab, [model], progress=False)
    assert (table[0]["start"], table[0]["trained"], table[0]["of"]) == (0, 2, 2)
    for row in lab.runs.runs(backbone="m"):
        assert row["identity"] == {**identity, "backbone": model.identity}
    assert "repeats 3" in table.notes[0] and "families odd" in table.notes[0] and "left" not in table.notes[0]


def test_a_trainer_that_is_given_decides(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    first = trained(lab, budget=1, gate=4)
    trainer(lab, gate=3)
    assert hl.transfer(lab, [Model()], trainer=first, progress=False)[0]["of"] == 4
    assert hl.transfer(lab, [Model()], progress=False)[0]["of"] == 3
    assert hl.transfer(lab, [Model()], trainer=first, limit=1, progress=False)[0]["of"] == 1
    with pytest.raises(ConfigError, match="belongs to the lab"):
        hl.transfer(open_lab("second"), [Model()], trainer=first)


def test_forked_tasks_stay_out(open_lab: Callable[..., Any]) -> None:
    made = trained(open_lab())
    made.forked.add("gate-3")
    assert hl.transfer(made.lab, [Model()], progress=False)[0]["of"] == 7


def test_the_models_that_the_training_measured_are_not_played_again(open_lab: Callable[..., Any]) -> None:
    model = Model()
    made = trained(open_lab(), llm=model, repeats=2)
    calls = model.calls
    assert hl.transfer(made.lab, [model], progress=False)[0]["gain"] == 8 and model.calls == calls


@pytest.mark.parametrize("cause", ["key", "model", "quota", "unreachable", "setup", "server", "busy", "refused"])
def test_a_model_that_fails_is_a_row_and_the_others_go_on(open_lab: Callable[..., Any], cause: str) -> None:
    made = trained(open_lab())
    table = hl.transfer(made.lab, [Model({"model": "bad"}, fail=cause), Model()], progress=False)
    bad, good = table
    assert cause in bad["problem"] and bad["model"] == "bad" and bad.get("gain") is None
    assert good["gain"] == 8 and "problem" not in good
    assert "bad" in repr(table) and cause in table._repr_html_() and len(table.to_frame()) == 2


def test_what_was_measured_before_a_model_failed_is_in_its_row(open_lab: Callable[..., Any]) -> None:
    made = trained(open_lab())
    model = Model()

    class Dies(Model):
        async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
            if "on the right" in request.messages[0]["content"]:
                raise BackboneError("the credit is used up", cause="quota")
            return await model.complete(request, repeat=repeat)

    row = hl.transfer(made.lab, [Dies({"model": "dies"})], progress=False)[0]
    assert row["start"] == 0 and row["of"] == 8 and "trained" not in row and "credit" in row["problem"]


@pytest.mark.parametrize("fresh", [False, True], ids=["the same kernel", "a new kernel"])
def test_the_limits_of_the_training_hold(open_lab: Callable[..., Any], fresh: bool) -> None:
    made = trained(open_lab(), max_calls=200)
    left = 200 - made.meter.usage().calls
    lab = made.lab
    if fresh:
        latest._latest = None
    table = hl.transfer(lab, [Model({"model": name}) for name in "abcdef"], progress=False)
    assert [row.get("problem", "")[:21] for row in table][-1] == "Call budget exhausted"
    assert sum(len(run.episodes) > 0 for run in [lab.load_run(row) for row in lab.runs.runs(purpose="transfer")]) > 1
    used = hl.Trainer(lab, Model(), settings={"progress": False}).meter.usage().calls
    assert 200 <= used <= 200 + 1 and left > 0


def test_two_models_of_one_name_are_told_apart() -> None:
    def named(*identities: Mapping[str, Any]) -> list[str]:
        return model_names([Model(identity) for identity in identities])

    assert named({"model": "m"}, {"model": "n"}) == ["m", "n"]
    one, two = {"model": "m", "base_url": "http://a/v1"}, {"model": "m", "base_url": "http://b/v1"}
    assert named(one, two, {"model": "n"}) == ["m (base_url http://a/v1)", "m (base_url http://b/v1)", "n"]
    warm, cold = ({"model": "m", "sampling": {"temperature": t, "max_tokens": 9}} for t in (0.7, 0.0))
    assert named(warm, cold) == ["m (temperature 0.7)", "m (temperature 0.0)"]
    assert named(one, {"model": "m"})[1] == "m (base_url none)"
    assert named(one, one) == ["m", "m #2"]
    many = named(one, two, warm, cold, one)
    assert len(set(many)) == 5 and all(name.startswith("m") for name in many)


def test_endpoints_of_one_name_are_measured_and_shown_apart(open_lab: Callable[..., Any]) -> None:
    made = trained(open_lab())
    good = Model({"model": "m", "base_url": "http://a"})
    bad = Model({"model": "m", "base_url": "http://b"}, fail="server")
    rows = hl.transfer(made.lab, [good, bad], progress=False)
    assert [row["model"] for row in rows] == ["m (base_url http://a)", "m (base_url http://b)"]
    assert rows[0]["gain"] == 8 and rows[1]["problem"]


def test_another_environment_has_its_own_base_prompt_and_the_lab_s_interventions(
    open_lab: Callable[..., Any], tmp_path: Path
) -> None:
    lab = open_lab()
    made = trained(lab, leave_out=("gate-0",), families=("odd",), gate=3)
    model, other = Model(), OtherWorld(tmp_path)
    table = hl.transfer(lab, [model], [lab.environment, other], progress=False)
    assert [(row["environment"], row["gain"], row["of"]) for row in table] == [("corridor", 3, 3), ("other", 3, 3)]
    mine = [text for text in model.systems if "elsewhere" in text]
    assert len(mine) * 2 == len(model.systems)
    assert any("on the right" in text for text in mine) and any("on the right" not in text for text in mine)
    assert "other: with the base prompt of its own starter" in table.notes[-1] and "corridor" in table.notes[-1]
    calls = model.calls
    hl.transfer(lab, [model], [lab.environment, other], progress=False)
    assert model.calls == calls
    assert made.measure("gate").identity.get("base") is None


def test_an_environment_that_is_not_there_is_a_row(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    class Empty(OtherWorld):
        name = "empty"

        def tasks(self, split: Any) -> list[Any]:
            return []

    class Broken(OtherWorld):
        name = "broken"

        def tasks(self, split: Any) -> list[Any]:
            raise OSError("the disk is gone")

    class Homeless(OtherWorld):
        name = "homeless"

        def starter(self) -> Path:
            return tmp_path / "nowhere"

    made = trained(open_lab())
    envs: Sequence[Any] = ["kitchn", Empty(tmp_path), Broken(tmp_path), Homeless(tmp_path), OtherWorld(tmp_path)]
    table = hl.transfer(made.lab, [Model(), Model({"model": "n"})], envs, progress=False)
    assert [row["environment"] for row in table] == ["kitchn", "empty", "broken", "homeless", "other", "other"]
    problems = [row.get("problem", "") for row in table]
    assert all(problems[:4]) and not any(problems[4:]) and "the disk is gone" in problems[2]
    assert [row.get("gain") for row in table] == [None] * 4 + [8, 8]


def test_an_interrupted_transfer_goes_on_where_it_was(open_lab: Callable[..., Any]) -> None:
    made = trained(open_lab())
    first, second = Model({"model": "a"}), Model({"model": "b"})
    complete = second.complete

    async def interrupted(request: Any, *, repeat: int = 0) -> Completion:
        if second.calls == 9:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()  # until the interrupt cancels it
        return await complete(request, repeat=repeat)

    second.complete = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        hl.transfer(made.lab, [first, second], progress=False)
    done, begun = first.calls, second.calls
    second.complete = complete  # type: ignore[method-assign]
    table = hl.transfer(made.lab, [first, second], progress=False)
    assert [row["gain"] for row in table] == [8, 8] and first.calls == done
    assert begun > 5 and second.calls == done + begun % 5, "only the episode in flight was played again"


@pytest.mark.parametrize("models", ["gpt", [], None, [None], ["gpt"], [hl.LLM], 5, always("left")])
def test_what_is_no_model_is_said_before_anything_is_played(open_lab: Callable[..., Any], models: Any) -> None:
    lab = open_lab()
    with pytest.raises(ConfigError):
        hl.transfer(lab, models, progress=False)
    assert lab.runs.runs() == []


def test_an_opening_by_transfer_names_its_environment(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    made = trained(open_lab())
    hl.transfer(made.lab, [Model()], [OtherWorld(tmp_path)], split="sealed", progress=False)
    assert [row["environment"] for row in made.lab.openings()] == ["other", "other"]
