"""The verdict panel and the learning curve panel, and what all panels leave behind in a notebook file."""

from __future__ import annotations

import re
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError, OrderError, StoreError
from harnesslab.panels.base import MIME
from tests.panels.conftest import EVIL


@pytest.fixture
def loss(trainer: Any, proposals: Any) -> Any:
    return trainer.evaluate(proposals[0])


def test_the_verdict_shows_flips_metrics_and_cost(loss: Any) -> None:
    view = hl.panels.verdict(loss).static()
    for flip in loss.verdict.flips:
        assert flip.task in view
    assert "Solved 0 → 4 of 4" in view
    assert "invalid" in view
    assert "Cost of the candidate: 4 episodes" in view


def test_accept_reject_undo_and_their_order(loss: Any, trainer: Any) -> None:
    panel = hl.panels.verdict(loss)
    with pytest.raises(StoreError, match="nothing to undo"):
        panel.undo()
    with pytest.raises(ConfigError, match="reason"):
        panel.reject(reason="  ")
    panel.reject(reason="I do not trust it.")
    assert panel.candidate.verdict["override"] is True
    assert "(override)" in panel.plain()
    assert "an override" in panel.static()
    with pytest.raises(OrderError, match="already rejected"):
        panel.accept(reason="yes")
    panel.undo()
    assert panel.accept(reason="Looked at the flips.")
    assert panel.candidate.verdict["override"] is False
    assert trainer.lab.repo.baseline() == panel.candidate.commit


def test_the_buttons_of_the_verdict(loss: Any) -> None:
    panel = hl.panels.verdict(loss)
    panel._promote.click()
    assert "needs a reason" in panel.error.value
    panel._reason.value = "good"
    panel._promote.click()
    assert panel.candidate.state == "promoted"
    assert panel._promote.disabled
    panel._undo.click()
    assert panel.candidate.state == "measured"


def test_a_verdict_that_the_loop_acted_on_is_shown_as_the_criterions(loss: Any, trainer: Any) -> None:
    loss.backward()
    trainer.optimizer.step()
    assert "Promoted by StrictPareto." in hl.panels.verdict(loss).plain()


def test_the_curve_has_a_picture_and_a_table(loss: Any, trainer: Any) -> None:
    empty = hl.panels.curve(trainer)
    assert "nothing yet" in empty.static()
    trainer.accept(loss, "good")
    panel = hl.panels.curve(trainer.lab)
    assert "data:image/png;base64," in panel.static()
    assert "alt='Learning curve" in panel.static()
    assert "contract/right" in panel.plain()
    empty._again.click()
    assert "contract/right" in empty._view.value


def test_every_panel_leaves_text_behind(loss: Any, trainer: Any, proposals: Any) -> None:
    panels = [
        hl.panels.failures(trainer.diagnose()),
        hl.panels.interventions(proposals),
        hl.panels.verdict(loss),
        hl.panels.curve(trainer),
    ]
    for panel in panels:
        bundle = panel._repr_mimebundle_()
        assert set(bundle) == {MIME, "text/html", "text/plain"}
        assert EVIL not in bundle["text/html"]
        assert not re.search("&lt;(p|div|table|details|span)", bundle["text/html"]), "our own markup was escaped"
        assert len(bundle["text/plain"].strip()) > 10
        assert len(bundle["text/html"]) < 300_000


def test_the_static_view_is_an_output_of_its_own(trainer: Any, proposals: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Handle:
        def update(self, content: Any, raw: bool) -> None:
            shown.append(("update", content))

    def display(content: Any, raw: bool = False, display_id: Any = None) -> Any:
        shown.append(("display", content))
        return Handle() if display_id else None

    monkeypatch.setattr("IPython.display.display", display)
    panel = hl.panels.interventions(proposals)
    panel._ipython_display_()
    assert [kind for kind, _ in shown] == ["display", "display"]
    assert MIME in shown[0][1]
    assert MIME not in shown[1][1]
    assert "Run the cell again" in shown[1][1]["text/html"]
    panel.reject(0, reason="seen enough")
    kind, content = shown[-1]
    assert kind == "update"
    assert "seen enough" in content["text/html"]
