"""The failures panel: causes, pages, and the step viewer."""

from __future__ import annotations

from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError
from harnesslab.panels.failure_view import PAGE, FailuresPanel
from harnesslab.trainer.failures import Failures
from tests.panels.conftest import EVIL
from tests.trainer.trajectories import episode, run

ESCAPED = "&lt;img src=x onerror=alert(1)&gt;"


def shown(panel: FailuresPanel) -> str:
    return panel._view.value


def test_the_viewer_starts_at_the_bottleneck_and_shows_the_whole_step(trainer: Any) -> None:
    panel = hl.panels.failures(trainer.diagnose())
    failure, step = panel.shown
    assert step == failure.diagnosis.step
    text = shown(panel)
    assert "This is the earliest step that went wrong." in text
    for part in ("Observation", "Request (", "Raw reply", "Action", "Fired", "Result", "model = scripted"):
        assert part in text
    assert ESCAPED in text
    assert EVIL not in text


def test_the_request_is_shown_exactly(trainer: Any) -> None:
    panel = hl.panels.failures(trainer.diagnose())
    failure, step = panel.shown
    for message in failure.episode.steps[step].request["messages"]:
        first = message["content"].splitlines()[0]
        assert first.replace("<", "&lt;").replace(">", "&gt;") in shown(panel)


def test_step_buttons_stay_in_the_episode(trainer: Any) -> None:
    panel = hl.panels.failures(trainer.diagnose()).show(1, step=0)
    assert panel._back.disabled
    panel._on.click()
    assert panel.shown[1] == 1
    panel._go(99)
    assert panel.shown[1] == len(panel.shown[0].episode.steps) - 1
    assert panel._on.disabled
    panel._wrong.click()
    assert panel.shown[1] == panel.shown[0].diagnosis.step


def test_many_failures_come_in_pages() -> None:
    failures = Failures(run(*(episode(f"t{n}", (None, "?")) for n in range(45))))
    panel = hl.panels.failures(failures)
    assert len(panel._list.options) == PAGE
    assert "1 to 20 of 45" in panel.status.value
    assert panel._older.disabled
    panel._newer.click()
    panel._newer.click()
    assert "41 to 45 of 45" in panel.status.value
    assert panel._newer.disabled
    assert panel.shown[0].episode.task_id == "t40"
    panel.show(21)
    assert panel.shown[0].episode.task_id == "t21"
    assert panel.show(-1).shown[0].episode.task_id == "t44"


def test_a_cause_can_be_chosen() -> None:
    stuck = [("left", "Room 0.")] * 5
    failures = Failures(run(episode("a", (None, "?")), episode("b", *stuck), episode("c", *stuck)))
    assert len(failures.clusters) == 2
    panel = hl.panels.failures(failures)
    panel._causes.value = 0
    assert [panel._chosen[i].episode.task_id for i in range(len(panel._chosen))] == ["b", "c"]
    panel._causes.value = 1
    assert panel.shown[0].episode.task_id == "a"


def test_no_failure_and_unknown_numbers() -> None:
    panel = hl.panels.failures(Failures(run()))
    assert panel.shown is None
    assert "no episode failed" in panel.status.value
    with pytest.raises(ConfigError, match="no failure 0"):
        panel.show(0)


def test_an_episode_without_steps_can_be_shown() -> None:
    panel = hl.panels.failures(Failures(run(episode("a"))))
    assert "No step was made." in shown(panel)


def test_long_texts_are_cut_with_a_mark() -> None:
    panel = hl.panels.failures(Failures(run(episode("a", (None, "x" * 50_000)))))
    assert "characters are not shown" in shown(panel)
    assert len(shown(panel)) < 30_000


def test_names_from_the_environment_are_escaped() -> None:
    panel = hl.panels.failures(Failures(run(episode(EVIL, (EVIL, EVIL), instruction=EVIL, family=EVIL))))
    for view in (panel.static(), shown(panel)):
        assert EVIL not in view
        assert ESCAPED in view
