"""The interventions panel: what its buttons and its methods do to git, and what it shows of that."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BaselineMoved, ConfigError, HarnessFileError, LeakFound, OrderError, StoreError
from harnesslab.panels.intervention_view import InterventionsPanel
from harnesslab.rollout.records import Episode
from tests.panels.conftest import EVIL, RIGHT

ESCAPED = "&lt;img src=x onerror=alert(1)&gt;"


@pytest.fixture
def panel(proposals: Any) -> InterventionsPanel:
    return hl.panels.interventions(proposals)


def press(panel: InterventionsPanel, words: str) -> None:
    """Click the button with these words, as a person does."""
    controls = panel._ui
    [button] = [one for one in vars(controls).values() if getattr(one, "description", None) == words]
    if not button.disabled:
        button.click()


def reason(panel: InterventionsPanel, words: str) -> None:
    panel._ui._reason.value = words


def test_accept_moves_the_baseline_and_is_recorded_as_a_persons(panel: InterventionsPanel, trainer: Any) -> None:
    loss = panel.measure(0)
    assert float(loss) < 0
    assert panel.accept(0, reason="All corridors are solved.")
    promoted = trainer.lab.repo.candidate(loss.candidate)
    assert promoted.state == "promoted"
    assert trainer.lab.repo.baseline() == promoted.commit
    assert (promoted.verdict["who"], promoted.verdict["decided_by"]) == ("Ada", "person")
    assert promoted.verdict["override"] is False
    assert len(promoted.verdict["flips"]) == 4
    assert panel.standing(0).word == "promoted"


def test_buttons_do_the_same(panel: InterventionsPanel, trainer: Any) -> None:
    panel.show(1)
    reason(panel, "It helps nobody.")
    press(panel, "Reject")
    assert panel.log == []
    [row] = trainer.lab.repo.candidates(state="rejected").rows
    assert row.reason == "It helps nobody."
    assert panel._ui._reason.value == ""
    assert "It helps nobody." in panel._ui._detail.value
    press(panel, "Undo")
    assert trainer.lab.repo.candidate(row.id).state == "pending"
    assert panel.standing(1).word == "pending"


def test_a_decision_without_a_reason_is_shown_as_an_error_and_changes_nothing(
    panel: InterventionsPanel, trainer: Any
) -> None:
    press(panel, "Promote")
    assert "needs a reason" in panel.error.value
    assert panel.log == ["A decision needs a reason: say why in a few words. It is stored with the decision."]
    assert trainer.lab.repo.candidates().total == 0
    assert not panel.busy
    assert not panel._ui._promote.disabled


def test_a_handler_that_raises_shows_its_escaped_message_and_gives_the_buttons_back(
    panel: InterventionsPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"the disk {EVIL} is gone")

    monkeypatch.setattr(panel.trainer, "reject", broken)
    reason(panel, "no")
    press(panel, "Reject")
    assert ESCAPED in panel.error.value
    assert EVIL not in panel.error.value
    assert panel.log == [f"RuntimeError: the disk {EVIL} is gone"]
    assert not panel._ui._reject.disabled
    assert not panel.busy


def test_a_double_click_decides_once(panel: InterventionsPanel, trainer: Any) -> None:
    button = panel._ui._reject
    reason(panel, "no")
    button.click()
    reason(panel, "no again")
    button.click()  # a browser sends the second click before it learns that the button is off
    assert trainer.lab.repo.counts() == {"rejected": 1}
    assert panel.log == ["proposal 0 is already rejected; undo(0) takes that back"]


def test_decisions_show_after_the_panel_is_made_again(panel: InterventionsPanel, trainer: Any, proposals: Any) -> None:
    panel.reject(1, reason="It helps nobody.")
    again = hl.panels.interventions(proposals)
    assert again.standing(1).word == "rejected"
    assert again.standing(1).sentence == "Rejected by Ada: It helps nobody."
    again.show(1)
    assert again._ui._reject.disabled
    assert not again._ui._undo.disabled
    with pytest.raises(OrderError, match="already rejected"):
        again.accept(1, reason="yes")
    again.undo(1)
    assert again.standing(1).word == "pending"
    panel.accept(0, reason="good")
    third = hl.panels.interventions(proposals)
    assert third.standing(0).word == "promoted"
    assert third.standing(1).word == "pending on an earlier baseline"


def test_accepting_what_was_measured_on_an_earlier_baseline_is_refused(panel: InterventionsPanel) -> None:
    panel.measure(1)
    panel.accept(0, reason="good")
    with pytest.raises(BaselineMoved, match="measure it again"):
        panel.accept(1, reason="also good")
    assert panel.standing(1).word == "measured on an earlier baseline"


def test_an_override_is_shown_as_one(panel: InterventionsPanel, trainer: Any) -> None:
    loss = panel.measure(1)
    assert loss.verdict.decision == "reject"
    panel.accept(1, reason="I want it all the same.")
    assert trainer.lab.repo.candidate(loss.candidate).verdict["override"] is True
    assert "(override)" in panel.static()
    panel.undo()
    panel.accept(1, reason="Still.")
    assert trainer.lab.repo.candidate(loss.candidate).verdict["override"] is True


def test_undo_without_a_number_takes_the_last_decision_back(panel: InterventionsPanel) -> None:
    with pytest.raises(OrderError, match="nothing has been decided"):
        panel.undo()
    panel.reject(0, reason="a")
    panel.reject(1, reason="b")
    panel.undo()
    assert [panel.standing(i).word for i in (0, 1)] == ["rejected", "pending"]
    panel.undo()
    assert [panel.standing(i).word for i in (0, 1)] == ["pending", "pending"]
    with pytest.raises(StoreError, match="nothing to undo"):
        panel.undo(1)


def test_an_edit_is_checked_and_takes_the_proposals_place(panel: InterventionsPanel, proposals: Any) -> None:
    with pytest.raises(HarnessFileError, match="line 1, key 'kind'"):
        panel.edit(1, "kind: promt\n")
    assert panel.rows[1].proposal == proposals[1]
    made = panel.edit(1, RIGHT)
    assert made.about == "Show the way."
    assert made.estimator == "manual, edited"
    assert panel.rows[1].changed
    assert float(panel.measure(1)) < 0
    panel.reject(1, reason="twice the same")
    again = hl.panels.interventions(proposals)
    assert again.standing(1).word == "proposed"
    assert again.standing(1).sentence == "Another version of it was rejected."


def test_an_edit_that_carries_one_tasks_words_is_refused(panel: InterventionsPanel, proposals: Any) -> None:
    lab = panel.trainer.lab
    told = Episode("search-0", "odd", "Bring the mug to Karenina.")
    run_id = lab.runs.begin_run(lab.repo.baseline(), {}, split="search")
    lab.runs.add_episode(run_id, told.summary(), [])
    panel.trainer.estimator.scan = True
    with pytest.raises(LeakFound, match="Karenina"):
        panel.edit(0, RIGHT.replace("Go right.", "Ask Karenina."))
    assert panel.rows[0].proposal == proposals[0]


def test_the_editor_tells_at_once_what_is_wrong_and_goes_back(panel: InterventionsPanel, proposals: Any) -> None:
    ui = panel._ui
    assert ui._text.value == proposals[0].changes["contract/right.yaml"]
    ui._text.value = "kind: prompt\nparams:\n  txt: x\n"
    assert "line 2, key" in ui._text_error.value or "line 3, key" in ui._text_error.value
    assert panel.rows[0].proposal == proposals[0]
    ui._text.value = RIGHT.replace("way", "door")
    assert "valid intervention" in ui._text_error.value
    press(panel, "Use this text")
    assert panel.rows[0].proposal.about == "Show the door."
    press(panel, "Original text")
    assert panel.rows[0].proposal == proposals[0]
    assert ui._text.value == RIGHT


def test_measuring_from_the_button_keeps_the_panel_busy_and_follows(panel: InterventionsPanel) -> None:
    go = threading.Event()
    llm = panel.trainer.llm
    asked = threading.Event()

    class Slow:
        identity, constrains = llm.identity, False

        async def complete(self, request: Any, *, repeat: int = 0) -> Any:
            import asyncio

            asked.set()
            while not go.is_set():
                await asyncio.sleep(0.005)
            return await llm.complete(request, repeat=repeat)

    panel.trainer.llm = Slow()
    press(panel, "Measure")
    assert asked.wait(10)
    job = panel._job
    assert job is not None
    assert panel.busy
    assert panel._ui._promote.disabled
    assert not panel._ui._cancel.disabled
    with pytest.raises(OrderError, match="busy"):
        panel.accept(0, reason="now")
    go.set()
    job.wait(20)
    assert not panel.busy
    assert panel.rows[0].loss is not None
    assert "8/8 episodes" in panel.status.value
    assert panel._ui._cancel.disabled
    assert not panel._ui._promote.disabled
    assert "solved 0 → 4 of 4" in panel._ui._table.value


def test_cancel_stops_a_measurement_and_keeps_what_was_played(panel: InterventionsPanel) -> None:
    asked = threading.Event()

    class Stuck:
        identity, constrains = panel.trainer.llm.identity, False

        async def complete(self, request: Any, *, repeat: int = 0) -> Any:
            import asyncio

            asked.set()
            await asyncio.Event().wait()

    panel.trainer.llm = Stuck()
    press(panel, "Measure")
    assert asked.wait(10)
    job = panel._job
    assert job is not None
    panel._ui._cancel.click()
    job.wait(20)
    assert not panel.busy
    assert panel.log == ["stopped after 0 of 8 episodes; finished episodes are kept"]
    assert panel.rows[0].loss is None
    assert not panel._ui._measure.disabled


def test_a_measurement_that_fails_says_so(panel: InterventionsPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        identity, constrains = panel.trainer.llm.identity, False

        async def complete(self, request: Any, *, repeat: int = 0) -> Any:
            raise hl.errors.BackboneError("the endpoint is closed")

    panel.trainer.llm = Broken()
    press(panel, "Measure")
    if panel._job is not None:
        panel._job.wait(20)
    assert panel.log == ["the endpoint is closed"]
    assert "the endpoint is closed" in panel.error.value
    assert not panel.busy


def test_no_view_lets_markup_through(panel: InterventionsPanel) -> None:
    panel.measure(1)
    panel.reject(1, reason=f"because {EVIL}")
    panel.show(1)
    views = [panel.static(), panel._ui._table.value, panel._ui._detail.value, panel._repr_mimebundle_()["text/html"]]
    for view in views:
        assert EVIL not in view
        assert ESCAPED in view


def test_unknown_numbers_are_named(panel: InterventionsPanel) -> None:
    for call in (panel.show, panel.measure, panel.standing):
        with pytest.raises(ConfigError, match="no proposal 7"):
            call(7)
    with pytest.raises(ConfigError, match="no proposal -1"):
        panel.reject(-1, reason="x")


def test_an_empty_list_can_be_shown(trainer: Any) -> None:
    panel = hl.panels.interventions(trainer.propose())
    assert panel.plain() == "0 proposals"
    assert panel._ui._promote.disabled


def test_without_a_trainer_the_error_says_how_to_give_one(proposals: Any, trainer: Any) -> None:
    loose = type(proposals)(list(proposals))
    with pytest.raises(ConfigError, match="trainer=trainer"):
        hl.panels.interventions(loose)
    assert len(hl.panels.interventions(loose, trainer=trainer).rows) == 2
