"""The loop as a user types it: with git afterwards, after interrupts, out of order, and decided by a person."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import harnesslab as hl
from harnesslab.errors import (
    BackboneError,
    BaselineMoved,
    ConfigError,
    HarnessFileError,
    OrderError,
    UnmeasurableRun,
)
from harnesslab.ledger import Verdict, solved_counts, who_decided
from harnesslab.llm import Completion
from harnesslab.rollout.null import null_policy
from harnesslab.rollout.progress import Bar
from harnesslab.store import LabRepo
from tests.conftest import always
from tests.worlds import CorridorWorld

ROOT = Path(__file__).parents[2]

RIGHT = "kind: prompt\nabout: Say where the door is.\nparams:\n  text: The door is on the right.\n"
WRONG = "kind: prompt\nabout: Say it wrongly.\nparams:\n  text: The door is on the left.\n"


def obedient(messages: Any) -> str:
    """Goes right once the prompt says so; a 'model' whose behaviour depends on the harness."""
    system = messages[0]["content"]
    return "Action: right" if "on the right" in system and "on the left" not in system else "Action: left"


def trainer(lab: Any, *texts: str, llm: Any = None, **settings: Any) -> hl.Trainer:
    estimator = hl.ManualEstimator(scan=False)
    for number, text in enumerate(texts):
        estimator.add_text(f"contract/hint{number}.yaml", text)
    return hl.Trainer(lab, llm or hl.LLM.scripted(obedient), estimator, settings={"progress": False, **settings})


def test_the_two_line_loop_promotes_what_helps_and_keeps_what_does_not(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, WRONG, RIGHT)
    start, losses = lab.repo.baseline(), []
    for loss in made.epochs(2):
        losses.append(loss)
        loss.backward()
        made.optimizer.step()
    assert [float(loss) < 0 for loss in losses] == [False, True]
    assert made.harness.applied is True and made.harness.grad is None
    trained = made.harness.data
    assert trained != start and "contract/hint1.yaml" in lab.repo.files(trained)
    rejected = lab.repo.candidates(state="rejected").rows
    assert [row.meta["name"] for row in rejected] == ["contract/hint0"]
    assert lab.repo.resolve(rejected[0].ref) == rejected[0].commit
    verdict = Verdict.from_json(lab.repo.verdict(trained))
    assert verdict.gain == 8 and verdict.decided_by == "criterion"
    assert not any(flip.incidental for flip in verdict.flips)
    assert "hint0" in lab.learning_path.read_text(encoding="utf-8")
    assert lab.edits() == {}, "learning.md is no edit of the user's"


def test_step_by_step_cells_give_the_same(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT)
    baseline = made.measure()
    assert baseline.solved == 0 and len(baseline) == 8
    failures = made.diagnose(baseline)
    proposals = made.propose(failures)
    loss = made.evaluate(proposals[0])
    assert float(loss) == -8
    loss.backward()
    assert made.optimizer.step() is True
    assert made.measure().solved == 8


def test_an_edited_file_is_told_until_it_is_proposed(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab)
    assert made.propose().edited == ()
    (lab.path / "contract").mkdir(exist_ok=True)
    (lab.path / "contract" / "hint.yaml").write_text(RIGHT, encoding="utf-8")
    seen = made.propose()
    assert len(seen) == 0 and seen.edited == ("contract/hint.yaml",)
    for shown in (repr(seen), seen._repr_html_()):
        assert "edited, but not proposed: contract/hint.yaml" in shown and "add_files(lab.edits())" in shown
    made.estimator.add_files(lab.edits())
    proposals = made.propose()
    assert [p.name for p in proposals] == ["contract/hint"] and proposals.edited == ()
    assert float(made.evaluate(proposals[0])) == -8


def test_it_works_under_a_running_event_loop_and_has_await_twins(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT)

    async def cells() -> tuple[int, float]:
        run = made.measure()  # a plain cell
        twin = await made.measure_async("gate")
        loss = await made.evaluate_async(made.propose(made.diagnose(run))[0])
        return len(twin), float(loss)

    assert asyncio.run(cells()) == (8, -8.0)


def test_calls_in_the_wrong_order_say_what_to_call(open_lab: Callable[..., Any]) -> None:
    made = trainer(open_lab(), RIGHT, WRONG)
    with pytest.raises(OrderError, match=r"loss\.backward\(\)"):
        made.optimizer.step()
    losses = made.epochs(2)
    first = next(losses)
    first.backward()
    with pytest.raises(OrderError, match=r"optimizer\.step\(\)"):
        next(losses)
    with pytest.raises(OrderError, match="search split"):
        made.diagnose(made.measure("gate"))
    with pytest.raises(OrderError, match="no parameter"):
        hl.GreedyMonotonic().step()
    with pytest.raises(ConfigError, match="one Proposal"):
        made.evaluate(made.propose())  # type: ignore[arg-type]


def test_a_second_measurement_plays_nothing_again_unless_asked(open_lab: Callable[..., Any]) -> None:
    calls: list[int] = []

    def counting(messages: Any) -> str:
        calls.append(1)
        return "Action: left"

    made = trainer(open_lab(), llm=hl.LLM.scripted(counting))
    first = made.measure()
    played = len(calls)
    assert made.measure().id == first.id and len(calls) == played
    fresh = made.measure(fresh=True)
    assert fresh.id != first.id and len(calls) == 2 * played


def test_a_dead_backbone_keeps_finished_episodes_and_the_rest_is_played_later(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    with pytest.raises(BackboneError):
        trainer(lab, llm=hl.LLM.scripted(["Action: left"] * 12)).measure()
    kept = lab.runs.episodes(lab.runs.runs()[0]["id"])
    assert len(kept) == 2  # five steps each
    replies: list[int] = []

    def later(messages: Any) -> str:
        replies.append(1)
        return "Action: left"

    run = trainer(lab, llm=hl.LLM.scripted(later)).measure()
    assert len(run) == 8 and len(replies) == 6 * 5


def test_resume_goes_on_inside_the_epoch(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    state = {"left": 8 * 5 + 13}

    def dies(messages: Any) -> str:
        state["left"] -= 1
        if state["left"] == 0:
            os.kill(os.getpid(), signal.SIGINT)  # the stop button: arrives in the main thread
        return obedient(messages)

    first = trainer(lab, WRONG, RIGHT, llm=hl.LLM.scripted(dies))
    # A shell starts what runs in the background with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            for loss in first.epochs(2):
                loss.backward()
                first.optimizer.step()
    finally:
        signal.signal(signal.SIGINT, before)
    played = {run["purpose"]: len(lab.runs.episodes(run["id"])) for run in lab.runs.runs()}
    assert 0 < played["gate"] < 8
    # A new kernel: new objects on the same lab; the queue comes from the journal.
    second = hl.Trainer(lab, hl.LLM.scripted(obedient), hl.ManualEstimator(), settings={"progress": False})
    epochs = []
    for loss in second.resume():
        epochs.append((loss.epoch, loss.proposal.name))
        loss.backward()
        second.optimizer.step()
    assert epochs == [(1, "contract/hint0"), (2, "contract/hint1")]
    assert second.measure().solved == 8
    with pytest.raises(OrderError, match="no epochs were interrupted"):
        next(second.resume())
    assert lab.repo.counts().get("pending", 0) == 0


def test_resume_goes_on_from_the_very_first_measurement(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    first = trainer(lab, RIGHT, llm=hl.LLM.scripted(["Action: left"] * 12))
    with pytest.raises(BackboneError):
        next(first.epochs(1))
    assert [(run["split"], run["status"]) for run in lab.runs.runs()] == [("search", "running")]
    second = trainer(lab, RIGHT)
    for loss in second.resume():
        loss.backward()
        second.optimizer.step()
    assert second.measure().solved == 8


def test_a_person_goes_the_same_road_and_is_recorded(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT, WRONG)
    good, bad = made.propose(made.diagnose())
    with pytest.raises(ConfigError, match="reason"):
        made.reject(good, reason=" ")
    assert made.reject(made.evaluate(good), reason="not in our house", who="ada") is False
    row = lab.repo.candidates(state="rejected").rows[0]
    assert (row.decided_by, row.verdict["who"], row.verdict["override"]) == ("person", "ada", True)
    assert row.reason == "not in our house"
    made.undo()
    assert lab.repo.candidates(state="rejected").total == 0
    assert made.accept(made.evaluate(good), reason="it works", who="ada") is True
    verdict = lab.repo.verdict(lab.repo.baseline())
    assert (verdict["decision"], verdict["override"]) == ("promote", False)
    assert made.accept(bad, reason="trust me", who="bob") is True
    assert lab.repo.verdict(lab.repo.baseline())["criterion"] == "none"
    assert "bob" in repr(lab.log())


def test_a_measurement_is_on_record_before_anybody_decides(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT, WRONG)
    good, _ = made.propose(made.diagnose())
    loss = made.evaluate(good)
    with contextlib.closing(LabRepo.open(lab.path)) as another_process:
        [row] = another_process.candidates(state="measured").rows
    assert row.id == loss.candidate and Verdict.from_json(row.verdict or {}) == loss.judged
    assert who_decided(row.verdict) is None and row.decided_at is None
    assert "0 -> 8 of 8" in repr(lab.pending())
    assert made.promote(good, reason="as measured", who="ada") is True, "a proposal, as after a restart"
    verdict = lab.repo.verdict(lab.repo.baseline())
    assert (verdict["criterion"], verdict["tasks"], verdict["who"]) == (loss.judged.criterion, 8, "ada")
    made.undo()
    assert lab.repo.candidate(loss.candidate).state == "measured"


def test_a_kill_after_the_measurement_keeps_it(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    program = f"""
import os, signal
import harnesslab as hl
from tests.trainer.test_trainer import RIGHT, trainer
from tests.worlds import CorridorWorld
made = trainer(hl.Lab.open({str(tmp_path / "killed")!r}, env=CorridorWorld()), RIGHT)
loss = next(made.epochs(1))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    lab = open_lab("killed")
    [row] = lab.repo.candidates(state="measured").rows
    assert solved_counts(row.verdict) == (0, 8, 8) and row.delta == 8
    [loss] = _decided(trainer(lab, RIGHT))
    assert loss.candidate == row.id and lab.repo.candidate(row.id).state == "promoted"


def _decided(made: hl.Trainer) -> list[hl.Loss]:
    losses = []
    for loss in made.resume():
        loss.backward()
        made.optimizer.step()
        losses.append(loss)
    return losses


def test_a_moved_baseline_is_told_and_nothing_is_lost(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT, WRONG)
    good, bad = made.propose(made.diagnose())
    loss = made.evaluate(good)
    made.accept(bad, reason="someone else was faster")
    loss.backward()
    with pytest.raises(BaselineMoved):
        made.optimizer.step()
    assert made.harness.grad is not None
    assert lab.repo.candidate(loss.candidate).state == "measured"


def test_a_decision_that_failed_leaves_the_loss_as_it_was(open_lab: Callable[..., Any]) -> None:
    made = trainer(open_lab(), RIGHT, WRONG)
    good, bad = made.propose(made.diagnose())
    loss, other = made.evaluate(bad), made.evaluate(good)
    made.accept(other, reason="someone else was faster")
    with pytest.raises(BaselineMoved):
        made.accept(loss, reason="too late")
    assert loss.verdict is loss.judged and made.harness.grad is None
    other.backward()
    with pytest.raises(OrderError, match="still waiting"):
        made.reject(loss, reason="out of order")
    assert loss.verdict is loss.judged and made.harness.grad is not None


def test_a_broken_file_is_refused_before_it_is_a_commit(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab)
    proposal = hl.Proposal({"contract/x.yaml": "kind: prompt\nparms: {}\n"}, "contract", "prompt", "contract/x", "typo")
    with pytest.raises(HarnessFileError, match=r"contract/x\.yaml, line 2, key 'parms'"):
        made.evaluate(proposal)
    assert lab.repo.candidates().total == 0


def test_sealed_openings_are_recorded_with_the_control_beside(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT)
    for loss in made.epochs(1):
        loss.backward()
        made.optimizer.step()
    table = made.open_sealed()
    rows = {(row["harness"], row["backbone"]): row for row in table}
    assert rows["start", "scripted"]["solved"] == 0 and rows["trained", "scripted"]["solved"] == 8
    assert 0 < rows["trained", "random"]["solved"] <= 8
    assert rows["none", "null agent"]["solved"] == 0 and rows["none", "oracle"]["solved"] == 8
    assert len(lab.openings()) == 3


def test_a_bar_names_what_is_not_the_usual(open_lab: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Three bars stand below one another when the sealed split is opened; each says which run it is."""
    shown: list[str] = []
    monkeypatch.setattr(Bar, "close", lambda bar: shown.append(bar.label))
    lab = open_lab()
    made = trainer(lab, RIGHT)
    start = lab.repo.baseline()
    for loss in made.epochs(1):
        loss.backward()
        made.optimizer.step()
    shown.clear()
    made.open_sealed()
    assert shown == [f"measure sealed at {start[:10]}", "measure sealed", "measure sealed with random"]


def test_a_harness_that_leaves_no_choice_is_called_one(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab)
    forced = hl.Proposal(
        {"action/only.yaml": "kind: constrain\nparams:\n  exclude: left\n"}, "action", "constrain", "action/only", "x"
    )
    made.accept(forced, reason="a planner in disguise")
    table = made.open_sealed()
    assert {row["forced"] for row in table if row["backbone"] == "random"} == {100.0}
    assert any("plays alone" in note for note in table.notes)


def test_certified_forks_leave_the_panels(open_lab: Callable[..., Any]) -> None:
    world = CorridorWorld()
    made = trainer(open_lab(env=world))
    run = made.measure("gate")
    assert made.certify(run) == []
    original = world.make

    def moody() -> Any:
        env = original()
        reset = env.reset
        env.reset = lambda **options: (  # type: ignore[method-assign]
            ("Fog.", reset(**options)[1]) if options["seed"] == 3 else reset(**options)
        )
        return env

    world.make = moody  # type: ignore[method-assign]
    assert [fork.task for fork in made.certify(run)] == ["gate-3"]
    assert "gate-3" not in {task.id for task in made.panel("gate").tasks}


def test_the_probe_reports_noise_and_the_least_effect(
    open_lab: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(Bar, "tick", lambda bar: shown.append(bar.text()))
    calm = trainer(open_lab("calm")).probe()
    assert shown[-1].startswith("probe: 8/8 episodes")
    assert (calm.tasks, calm.flips, calm.minimum) == (8, 0, 5)
    coin = iter(range(10_000))
    wild = trainer(
        open_lab("wild"), llm=hl.LLM.scripted(lambda m: ("Action: left", "Action: right")[next(coin) // 17 % 2])
    )
    assert wild.probe().flips > 0


def test_transfer_is_a_matrix_over_models(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    made = trainer(lab, RIGHT)
    made.accept(made.propose(made.diagnose())[0], reason="sure")
    table = hl.transfer(lab, [hl.LLM.scripted(obedient), always("left")], progress=False)
    assert [(row["start"], row["trained"], row["gain"]) for row in table] == [(0, 8, 8), (0, 0, 0)]


def test_a_configuration_file_does_the_same(open_lab: Callable[..., Any], tmp_path: Path) -> None:
    config = tmp_path / "config" / "train_harness.yaml"
    config.parent.mkdir()
    config.write_text(
        "format: 1\nlab: ../labs/t\nenv: tables\nsettings: {search: 4, gate: 3, progress: false}\n", encoding="utf-8"
    )
    made = hl.Trainer(llm=hl.LLM.random(0), config_path=config)
    assert len(made.measure()) == 4 and made.lab.path == tmp_path / "labs" / "t"
    made.lab.close()
    config.write_text("settings: {serch: 4}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"train_harness\.yaml.*settings\.serch"):
        hl.Trainer(llm=hl.LLM.random(0), config_path=config)
    with pytest.raises(ConfigError, match="no lab"):
        hl.Trainer(llm=hl.LLM.random(0))
    with pytest.raises(ConfigError, match="no backbone"):
        hl.Trainer(open_lab())


def test_the_null_policy_is_no_solution(open_lab: Callable[..., Any]) -> None:
    assert null_policy("Room 0.", {"public": {}}) == ""


def test_a_server_that_changes_its_model_is_not_compared(open_lab: Callable[..., Any]) -> None:
    """The same identity, but another model behind the same name: routing between providers moves scores."""

    class Routed:
        constrains = False
        identity: ClassVar[dict[str, str]] = {"model": "alias"}
        serving = "model-a"

        async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
            return Completion("Action: left", model=self.serving)

    llm = Routed()
    made = trainer(open_lab(), RIGHT, llm=llm)
    assert made.measure("gate").served == ("model-a",)
    llm.serving = "model-b"
    with pytest.raises(UnmeasurableRun, match="model-a for the baseline and as model-b"):
        made.evaluate(made.propose(made.diagnose())[0])
