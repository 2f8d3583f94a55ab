"""The tour of `notebooks/03_sidebar_tour`: what it says is there to see, and the pictures that it shows.

With ``HARNESSLAB_PICTURES`` set to a folder, the pictures for the README and the notebook are written there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labdriver import REPOSITORY, LabServer, run_command, save_notebook

pytestmark = pytest.mark.browser

TOUR = REPOSITORY / "notebooks" / "03_sidebar_tour.ipynb"
NOTEBOOK = "tour.ipynb"
WIDE, TALL = {"width": 1280, "height": 800}, {"width": 1280, "height": 960}


def code_cells() -> list[str]:
    """The notebook's Python, cell by cell; shell lines are left out."""
    cells = json.loads(TOUR.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [text for text in texts if not text.startswith("!")]


@pytest.fixture
def folder(lab_server: LabServer) -> Iterator[Path]:
    """The tour's lab, made by the notebook's own cells for a person called Ada, beside a copy of the notebook."""
    place = lab_server.root / "tour"
    save_notebook(place / NOTEBOOK, code_cells())
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "envs")])
    env = {**os.environ, "JUPYTERHUB_USER": "Ada", "GIT_CONFIG_GLOBAL": os.devnull, "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", "\n".join(code_cells())], cwd=place, env=env, check=True, capture_output=True)
    yield place
    shutil.rmtree(place)


def test_the_tour_shows_what_it_says(page: Any, folder: Path) -> None:
    page.set_viewport_size(WIDE)
    run_command(page, "docmanager:open", {"path": f"tour/{NOTEBOOK}"})
    page.locator(".jp-Notebook .cm-content").first.wait_for()
    launcher = page.get_by_role("tab", name="Launcher")
    if launcher.count():
        launcher.locator(".lm-TabBar-tabCloseIcon").click()
    run_command(page, "harnesslab:show")
    sidebar = page.locator("#harnesslab-sidebar")
    sidebar.get_by_role("button", name="Refresh").click()
    sidebar.get_by_label("Lab", exact=True).select_option("tour/labs/tour")
    for words in (
        "8 of 8 solved",
        "Pending (1)",
        "Rejected (2)",
        "Promoted (2)",
        "Too wordy for a model of this size.",
    ):
        sidebar.get_by_text(words).first.wait_for()
    assert sidebar.get_by_text("Ada").count() > 0
    assert sidebar.get_by_text("not committed").count() == 0, "what the library writes is no edit"
    page.locator("#jp-bottom-panel").get_by_text("| Idle").wait_for(timeout=90_000)
    shoot(page, "sidebar")

    sidebar.locator(".jp-harnesslab-Row", has_text="action/counts_only").click()
    view = page.locator(".jp-harnesslab-View:not(.lm-mod-hidden *)").last
    view.get_by_role("heading", level=2, name="action/counts_only").wait_for()
    view.locator(".cm-editor", has_text="Only counts may be asked for.").wait_for()
    lost = view.locator("tr[data-flip=loss]")
    lost.first.wait_for()
    page.set_viewport_size(TALL)
    shoot(page, "ref")
    page.set_viewport_size(WIDE)

    lost.first.get_by_role("button").first.click()
    view.get_by_text(re.compile("They part at step")).wait_for()
    view.get_by_role("group", name=re.compile("^Candidate, step")).first.wait_for()
    view.get_by_role("heading", name=re.compile("Trajectories of")).evaluate("node => node.scrollIntoView()")
    shoot(page, "trajectories")


def shoot(page: Any, name: str) -> None:
    """Keep a picture where pictures are wanted."""
    target = os.environ.get("HARNESSLAB_PICTURES")
    if target:
        page.mouse.move(0, 0)
        page.screenshot(path=str(Path(target) / f"{name}.png"), animations="disabled")
