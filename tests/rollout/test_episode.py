"""The trusted loop: what it records, whom it blames, what it never lets through."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.harness import Pipeline, load_harness
from harnesslab.rollout.env import Task
from harnesslab.rollout.episode import play
from harnesslab.rollout.records import Episode, Step
from tests.worlds import Corridor

BASE = {"harness.toml": b'name = "t"\nformat = 1\nprotocol = "text"\n[prompt]\nsystem = "Walk."\nhistory = 2\n'}
TASK = Task("t-1", "search", "odd", seed=1, options={"length": 2})


def run(
    replies: Any, *, files: dict[str, bytes] | None = None, fault: str = "", budget: int = 5, **options: Any
) -> Episode:
    script = replies if callable(replies) else list(replies)
    pipeline = Pipeline(load_harness({**BASE, **(files or {})}))
    return asyncio.run(play(Corridor(fault), TASK, pipeline, hl.LLM.scripted(script), budget=budget, **options))


def test_a_solved_episode_is_recorded_step_by_step() -> None:
    episode = run(["Action: right", "Action: right"])
    assert (episode.solved, episode.reason, episode.length, episode.progress) == (True, "solved", 2, 1.0)
    assert [step.observation for step in episode.steps] == ["Room 0.", "Room 1."]
    assert [step.result for step in episode.steps] == ["Room 1.", "Room 2."]
    assert episode.reward == 1.0 and episode.invalid == 0
    assert episode.steps[0].request["messages"][0]["content"].startswith("Walk.")


def test_a_reply_without_an_action_spends_the_step_and_not_the_environment() -> None:
    episode = run(["I would go right.", "Action: right", "Action: right"])
    first = episode.steps[0]
    assert (first.executed, first.invalid, first.action) == (False, True, None)
    assert "Action:" in first.result
    assert episode.steps[1].observation == first.result
    assert episode.solved and episode.invalid == 1


def test_the_budget_ends_the_episode_and_progress_is_kept() -> None:
    episode = run(lambda messages: "Action: left", budget=3)
    assert not episode.solved and episode.length == 3 and "budget of 3" in episode.reason
    episode = run(["Action: right", "Action: left"], budget=2)
    assert episode.progress == 0.5 and not episode.solved


@pytest.mark.parametrize("fault", ["reset", "step", "lie", "exit"])
def test_a_broken_environment_is_unscorable_and_never_charged_to_the_policy(fault: str) -> None:
    episode = run(["Action: right"] * 5, fault=fault)
    assert (episode.status, episode.owner) == ("unscorable", "environment")
    assert episode.reason and not episode.solved


def test_a_broken_intervention_is_charged_to_the_candidate() -> None:
    crash = b"def realize(context, proposal):\n    raise ValueError('boom')\n"
    episode = run(["Action: right"] * 5, files={"action/crash.py": crash})
    assert (episode.status, episode.owner, episode.solved) == ("finished", "harness", False)
    assert "action/crash" in episode.reason and "boom" in episode.reason


def test_firings_are_counted_per_step() -> None:
    loop = b"kind: budget\nparams: {}\n"
    episode = run(lambda messages: "Action: left", files={"regulation/warn.yaml": loop}, budget=4)
    assert episode.fired["regulation/warn"] == sum("regulation/warn" in step.fired for step in episode.steps) > 0


def test_private_facts_never_reach_the_request() -> None:
    episode = run(lambda messages: "Action: left", budget=3)
    sent = str([step.request for step in episode.steps])
    assert "progress" not in sent and "solved" not in sent and "t-1" not in sent


def test_every_completion_is_metered() -> None:
    seen: list[Any] = []
    run(["Action: right", "Action: right"], spend=seen.append)
    assert [completion.text for completion in seen] == ["Action: right", "Action: right"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=5))
def test_no_reply_breaks_the_loop_and_records_survive_json(replies: list[str]) -> None:
    episode = run((reply for reply in [*replies, *["x"] * 5]), budget=5)
    assert episode.status == "finished" and 1 <= episode.length <= 5
    again = [Step.from_json(step.to_json()) for step in episode.steps]
    assert again == episode.steps
    row = {**episode.summary(), "id": 7}
    assert Episode.from_summary(row, episode.steps).summary() == episode.summary()
