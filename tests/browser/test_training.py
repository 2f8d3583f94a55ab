"""A notebook trains while the sidebar looks on: progress and the new baseline show by themselves."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labdriver import LabServer, run_command, save_notebook

from harnesslab.store import LabRepo

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

FOLDER, NOTEBOOK = "training", "train.ipynb"
LAB = f"{FOLDER}/labs/tables"

CELLS = (
    Path(__file__).with_name("plain_model.py").read_text(encoding="utf-8"),
    """import os
import time
from pathlib import Path

import harnesslab as hl

os.environ["JUPYTERHUB_USER"] = "Ada"


def served(messages):
    phase = lab.runs.progress()[0]["what"].split()[0]
    while not Path(f"{phase} was seen").exists():  # so that the run lasts until the browser has seen it
        time.sleep(0.05)
    return model(messages)


lab = hl.Lab.open("labs/tables", env="tables")""",
    """settings = {"search": 8, "gate": 6, "budget": 4, "families": ["counting", "other"], "progress": False}
trainer = hl.Trainer(lab=lab, llm=hl.LLM.scripted(served), estimator=hl.MiningEstimator(), settings=settings)
for loss in trainer.epochs(1):
    loss.backward()
    trainer.optimizer.step()
print("promoted:", trainer.harness.applied)""",
)

SHOWN = {"measure": r"measure search: \d+ of 8 episodes", "evaluate": r"evaluate \w+/\w+: \d+ of 12 episodes"}
"""What the sidebar says in each phase of the training."""


@pytest.fixture
def folder(lab_server: LabServer) -> Iterator[Path]:
    """A folder with the notebook below the Jupyter root."""
    place = lab_server.root / FOLDER
    save_notebook(place / NOTEBOOK, CELLS)
    yield place
    shutil.rmtree(place)


def test_the_sidebar_follows_a_notebook_that_trains(page: Any, folder: Path) -> None:
    page.evaluate("window.stayed = true")
    run_command(page, "docmanager:open", {"path": f"{FOLDER}/{NOTEBOOK}"})
    page.locator(".jp-Notebook").wait_for()
    page.locator("#jp-bottom-panel").get_by_text("| Idle").wait_for(timeout=90_000)
    for _ in range(2):
        run_command(page, "notebook:run-cell-and-select-next")
    page.wait_for_function(
        "() => document.querySelectorAll('.jp-Notebook .jp-InputPrompt')[1]?.textContent.includes('[2]')",
        timeout=90_000,
    )
    run_command(page, "harnesslab:show")
    sidebar = page.locator("#harnesslab-sidebar")
    sidebar.get_by_role("button", name="Refresh").click()
    sidebar.get_by_label("Lab", exact=True).select_option(LAB)
    sidebar.get_by_text("Promoted (0)").wait_for()

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/harnesslab/live" in request.url else None)
    started = time.monotonic()
    run_command(page, "notebook:run-cell-and-select-next")
    try:
        for phase, shown in SHOWN.items():
            sidebar.get_by_text(re.compile(shown)).wait_for(timeout=60_000)
            assert sidebar.get_by_role("progressbar").is_visible()
            (folder / f"{phase} was seen").touch()
        sidebar.get_by_text("Promoted (1)").wait_for(timeout=60_000)
        page.locator(".jp-OutputArea-output", has_text="promoted: True").wait_for()
    except Exception as error:
        printed = page.locator(".jp-OutputArea-output").all_inner_texts()
        error.add_note(
            f"the sidebar: {sidebar.inner_text()}\nasked: {len(asked)} times\nthe notebook printed: {printed}"
        )
        raise
    sidebar.get_by_role("progressbar").wait_for(state="detached")

    repo = LabRepo.open(folder / "labs" / "tables")
    rows = repo.candidates().rows
    assert [row.state for row in rows] == ["promoted"] and repo.baseline() == rows[0].commit
    repo.close()
    history = sidebar.get_by_role("list", name=re.compile("History")).inner_text()
    assert rows[0].meta["name"] in history
    assert page.evaluate("window.stayed") is True, "the page was not loaded again"
    assert 2 <= len(asked) <= 2 + (time.monotonic() - started), "it asks, but at most once a second"
