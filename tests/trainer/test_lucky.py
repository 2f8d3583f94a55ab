"""A score that was lucky when it was promoted does not stop learning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.llm import Completion
from harnesslab.rollout.env import Task
from harnesslab.trainer.panel import choose_panel
from tests.trainer.test_trainer import RIGHT, trainer
from tests.worlds import CorridorWorld

LUCKY = "kind: prompt\nabout: Cross fingers.\nparams:\n  text: Cross your fingers.\n"


class Gambler:
    """A sampled model whom luck helps once: with crossed fingers it goes right in the very first draws only."""

    constrains = False
    identity: ClassVar[dict[str, Any]] = {"model": "gambler", "sampling": {"temperature": 1.0}}

    async def complete(self, request: Any, *, repeat: int = 0) -> Completion:
        text = str(request.messages)
        right = "on the right" in text or ("fingers" in text and repeat == 0)
        return Completion("Action: right" if right else "Action: left", model="gambler")


CRITERIA: list[Any] = [hl.StrictPareto(), hl.NetSolve(), hl.PairedTest()]


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda criterion: criterion.name)
def test_a_lucky_baseline_is_played_afresh_beside_the_next_candidate(
    open_lab: Callable[..., Any], criterion: Any
) -> None:
    made = trainer(open_lab(), LUCKY, RIGHT, llm=Gambler())
    made.criterion = criterion
    decisions, scores = [], []
    for loss in made.epochs(2):
        decisions.append(loss.verdict.decision)
        scores.append(loss.verdict.counts)
        loss.backward()
        made.optimizer.step()
    assert decisions == ["promote", "promote"]
    assert scores == [(0, 8, 8), (0, 8, 8)], "the second time the lucky one solves nothing"


def test_on_one_baseline_it_is_measured_once_and_a_verdict_can_be_made_again(open_lab: Callable[..., Any]) -> None:
    other = LUCKY.replace("fingers", "toes")
    made = trainer(open_lab(), LUCKY, other, other.replace("toes", "arms"), llm=Gambler())
    losses = []
    for loss in made.epochs(3):
        losses.append(loss)
        loss.backward()
        made.optimizer.step()
    assert losses[0].baseline.id != losses[1].baseline.id == losses[2].baseline.id
    assert {episode.repeat for episode in losses[1].baseline} == {1000}
    again = made.evaluate(losses[2].proposal)
    assert again.baseline.id == losses[2].baseline.id


def test_without_sampling_nothing_is_played_twice(open_lab: Callable[..., Any]) -> None:
    made = trainer(open_lab(), RIGHT, LUCKY)
    losses = []
    for loss in made.epochs(2):
        losses.append(loss)
        loss.backward()
        made.optimizer.step()
    assert {episode.repeat for loss in losses for episode in (*loss.baseline, *loss.measured)} == {0}


class Wide(CorridorWorld):
    """With more gate tasks than a decision takes."""

    def tasks(self, split: Any) -> list[Task]:
        return [Task(f"{split}-{n}", split, "f", seed=n, options={"length": 1 + n % 3}) for n in range(12)]


def test_fresh_gate_tasks_after_a_promotion(open_lab: Callable[..., Any]) -> None:
    more = RIGHT.replace("The door", "Believe me, the door")
    made = trainer(open_lab(env=Wide()), RIGHT, more, gate=5, fresh_gate=True)
    panels = []
    for loss in made.epochs(2):
        panels.append({episode.task_id for episode in loss.baseline})
        loss.backward()
        made.optimizer.step()
    assert len(panels) == 2 and not panels[0] & panels[1]
    first = trainer(open_lab(env=Wide()), RIGHT, gate=5)
    assert {task.id for task in first.panel("gate").tasks} == panels[0], "the first panel is the usual one"


@given(st.integers(1, 20), st.integers(1, 25), st.integers(1, 6))
def test_all_tasks_have_their_turn_before_one_has_another(count: int, limit: int, turns: int) -> None:
    tasks = [Task(f"gate-{n}", "gate", ("a", "b")[n % 2], n, {}) for n in range(count)]
    played: dict[str, int] = dict.fromkeys((task.id for task in tasks), 0)
    for turn in range(turns):
        panel = choose_panel(tasks, "gate", limit=limit, turn=turn)
        assert len({task.id for task in panel.tasks}) == min(limit, count)
        for task in panel.tasks:
            played[task.id] += 1
        assert limit > count or max(played.values()) - min(played.values()) <= 1
