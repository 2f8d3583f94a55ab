"""A notebook in a real JupyterLab: the panels are shown, clicks decide, and git holds what was decided.

With ``HARNESSLAB_SHOT`` set to a path, the picture for the README is written there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labdriver import LOAD_MS, save_notebook, wait_for_lab

from harnesslab.store import LabRepo

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

MODEL = Path(__file__).parent / "plain_model.py"
CELLS = (
    MODEL.read_text(encoding="utf-8"),
    """import os

import harnesslab as hl

os.environ["JUPYTERHUB_USER"] = "Ada"
lab = hl.Lab.open("labs/tables", env="tables")
settings = {"search": 8, "gate": 6, "budget": 4, "families": ["counting", "other"], "progress": False}
trainer = hl.Trainer(lab=lab, llm=hl.LLM.scripted(model), estimator=hl.MiningEstimator(), settings=settings)
failures = trainer.diagnose(trainer.measure())
hl.panels.failures(failures)""",
    """proposals = trainer.propose(failures)[:3]
hl.panels.interventions(proposals)""",
)


FOLDER, NOTEBOOK = "panels", "panels.ipynb"


@pytest.fixture
def folder(lab_server: Any) -> Iterator[Path]:
    """The notebook's folder among those that the server serves."""
    place = lab_server.root / FOLDER
    save_notebook(place / NOTEBOOK, CELLS)
    yield place
    shutil.rmtree(place)


def test_panels_decide_in_a_real_notebook(page: Any, folder: Path) -> None:
    page.set_viewport_size({"width": 1180, "height": 1500})
    page.set_default_timeout(60_000)
    open_notebook(page)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    cells = page.locator(".jp-Cell.jp-CodeCell")
    viewer, panel = cells.nth(1).locator(".jp-OutputArea"), cells.nth(2).locator(".jp-OutputArea")

    # Look: the viewer opens at the step that went wrong.
    viewer.get_by_text("This is the earliest step that went wrong.").first.wait_for(timeout=120_000)
    viewer.get_by_role("button", name="Next step").click()
    viewer.locator("b", has_text="Step 1").first.wait_for()

    # Reject the second one, with a reason.
    panel.get_by_label("Proposal").select_option(index=1)
    panel.get_by_label("Reason").fill("It adds text and flips nothing.")
    panel.get_by_label("Reason").press("Tab")
    panel.get_by_role("button", name="Reject").click()
    panel.get_by_text("Rejected by Ada: It adds text and flips nothing.").first.wait_for()

    # Measure the first one, in the background, then accept it with the keyboard.
    panel.get_by_label("Proposal").select_option(index=0)
    panel.get_by_role("button", name="Measure").click()
    panel.get_by_text("promote:").first.wait_for()
    panel.get_by_text("12/12 episodes").wait_for()
    panel.get_by_label("Reason").fill("Five tasks flip, each because it fired.")
    _shoot(page, panel)
    panel.get_by_label("Reason").press("Tab")
    accept = panel.get_by_role("button", name="Promote")
    accept.focus()
    accept.press("Enter")
    panel.get_by_text("Promoted by Ada: Five tasks flip, each because it fired.").first.wait_for()

    _check_git(folder / "labs" / "tables")
    _check_static(page)


def open_notebook(page: Any) -> None:
    """Open the notebook and wait until its kernel can be used."""
    page.evaluate(
        "path => { void window.jupyterapp.commands.execute('docmanager:open', { path }); }", f"{FOLDER}/{NOTEBOOK}"
    )
    page.locator(".jp-Notebook").wait_for()
    # The toolbar says idle before the session is connected; the status bar does not.
    page.locator("#jp-bottom-panel").get_by_text("| Idle").wait_for(timeout=LOAD_MS)


def _check_git(folder: Path) -> None:
    repo = LabRepo.open(folder)
    rows = {row.state: row for row in repo.candidates().rows}
    assert rows.keys() == {"promoted", "rejected"}
    assert repo.baseline() == rows["promoted"].commit
    for state, reason in (
        ("promoted", "Five tasks flip, each because it fired."),
        ("rejected", "It adds text and flips nothing."),
    ):
        verdict = rows[state].verdict or {}
        assert (rows[state].reason, verdict["who"], verdict["decided_by"]) == (reason, "Ada", "person")
    repo.close()


def _check_static(page: Any) -> None:
    """After a restart the widgets are gone; the summary below them is still there, up to date, and says what to do."""
    written = page.locator(".jp-Cell.jp-CodeCell").nth(2).locator("details td", has_text="promoted")
    written.first.wait_for(state="attached")  # the kernel updates it after the widgets
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    page.evaluate("window.jupyterapp.commands.execute('application:close-all')")
    page.reload(timeout=LOAD_MS)
    wait_for_lab(page)
    open_notebook(page)
    summary = page.locator(".jp-Cell.jp-CodeCell").nth(2).locator("details", has_text="Run the cell again").first
    summary.locator("summary").first.click()
    summary.locator("td", has_text="promoted").first.wait_for()
    assert "Five tasks flip, each because it fired." in summary.text_content()


def _shoot(page: Any, panel: Any) -> None:
    target = os.environ.get("HARNESSLAB_SHOT")
    if target:
        page.set_viewport_size(
            {"width": 1180, "height": 1900}
        )  # an output that is cut by the scroller is shot in pieces
        panel.scroll_into_view_if_needed()
        panel.screenshot(path=target)
