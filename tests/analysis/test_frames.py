"""Frames and the learning curve: what the store holds, as tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.analysis import frames
from harnesslab.store import RunStore
from tests.trainer.trajectories import episode, run

pytest.importorskip("pandas")

RIGHT = "kind: prompt\nabout: Show the way.\nparams:\n  text: Go right.\n"


def walker(messages: Any) -> str:
    told = any("Go right." in str(message["content"]) for message in messages)
    return "Action: right" if told else "Action: left"


@pytest.fixture
def trained(open_lab: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A lab with one rejection and one promotion, in this order."""
    monkeypatch.setenv("JUPYTERHUB_USER", "Ada")
    estimator = hl.ManualEstimator(scan=False)
    settings = {"progress": False, "gate": 4, "search": 4}
    trainer = hl.Trainer(lab=open_lab(), llm=hl.LLM.scripted(walker), estimator=estimator, settings=settings)
    useless = estimator.add_text("contract/useless.yaml", "kind: prompt\nparams:\n  text: Hello.\n")
    trainer.reject(trainer.evaluate(useless), "It helps nobody.")
    loss = trainer.evaluate(estimator.add_text("contract/right.yaml", RIGHT))
    loss.backward()
    trainer.optimizer.step()
    return trainer


def test_the_curve_has_a_row_for_each_verdict(trained: Any) -> None:
    frame = frames.curve(trained.lab.repo)
    assert list(frame["epoch"]) == [1, 2]
    assert list(frame["verdict"]) == ["rejected", "promoted"]
    assert list(frame["baseline"]) == [0, 0]
    assert list(frame["solved"]) == [0, 4]
    assert list(frame["decided by"]) == ["Ada", "StrictPareto"]
    assert str(frame["when"].dt.tz) == "UTC"
    assert len(trained.lab.curve()) == 2
    assert "Show the way." in repr(trained.lab.curve())


def test_an_unmeasured_decision_has_no_numbers(trained: Any) -> None:
    proposal = trained.estimator.add_text("contract/more.yaml", "kind: prompt\nparams:\n  text: More.\n")
    trained.accept(proposal, "I know it is right.")
    last = frames.curve_rows(trained.lab.repo)[-1]
    assert (last["verdict"], last["solved"], last["tasks"], last["gain"]) == ("promoted", None, None, None)


def test_candidates_and_flips(trained: Any) -> None:
    frame = frames.candidates(trained.lab.repo)
    assert list(frame["state"]) == ["promoted", "rejected"]
    promoted = trained.lab.repo.candidates(state="promoted").rows[0]
    flips = frames.flips(promoted.verdict)
    assert list(flips["task"]) == ["gate-0", "gate-1", "gate-2", "gate-3"]
    assert flips["after"].all()
    assert not flips["incidental"].any()


def test_stored_and_loaded_episodes_give_the_same_frame(trained: Any) -> None:
    played = trained.measure()
    stored = frames.stored_episodes(trained.lab.runs, played.id)
    assert stored.to_dict("records") == played.to_frame().to_dict("records")


def test_steps_and_fired(trained: Any) -> None:
    played = trained.lab.run(trained.measure().id)
    steps = frames.steps(played)
    assert len(steps) == sum(one.length for one in played)
    assert set(steps["action"]) == {"right"}
    fired = frames.fired(played)
    assert list(fired["intervention"]) == ["contract/right"]
    assert fired["steps"][0] == len(steps)
    assert fired["solved"][0] == 4


def test_frames_of_nothing_have_their_columns() -> None:
    assert list(frames.steps([]).columns) == list(frames.STEP_COLUMNS)
    assert list(frames.fired([]).columns) == ["intervention", "episodes", "steps", "solved"]
    assert frames.flips({}).empty
    assert run().to_frame().empty


def test_a_run_shows_itself_as_text_and_as_escaped_html() -> None:
    shown = run(episode("<b>t</b>", ("left", "no"), family="f"), *(episode(f"t{n}") for n in range(30)))
    assert "0 of 31 tasks solved" in repr(shown)
    assert "... and 11 more episodes" in repr(shown)
    assert "<b>t</b>" not in shown._repr_html_()
    assert "&lt;b&gt;t&lt;/b&gt;" in shown._repr_html_()


def test_five_thousand_episodes_open_within_a_second(tmp_path: Path) -> None:
    runs = RunStore.open(tmp_path)
    run_id = runs.begin_run("c" * 40, {"env": "x"}, split="search")
    step = {"index": 0, "observation": "o" * 200, "result": "r" * 200}
    summary = {"family": "f", "solved": True, "steps": 20, "fired": {"action/a": 20}, "reason": "solved"}
    for number in range(200):
        runs.add_episode(run_id, {**summary, "task_id": f"t{number}"}, [step] * 20)
    fill = "INSERT INTO episodes SELECT NULL, run_id, task_id || '-' || ?, family, repeat, seed, solved, reward, progress, steps,"
    fill += " invalid, prompt_tokens, completion_tokens, seconds, status, owner, label, fired, extra FROM episodes WHERE task_id NOT LIKE '%-%'"
    with runs._writing() as db:
        for copy in range(24):
            db.execute(fill, (copy,))
    spent = float("inf")
    for _ in range(5):  # the best of a few: the core is shared
        started = time.perf_counter()
        frame = frames.stored_episodes(runs, run_id)
        spent = min(spent, time.perf_counter() - started)
    assert len(frame) == 5_000
    assert frame["steps"].sum() == 100_000
    assert spent < 1.0
    runs.close()
