"""The sidebar on a lab whose notes, names and refs are odd: all of it is text, and nothing of it runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import labmaker
import pytest
from labdriver import LabServer
from test_sidebar import show

from tests.odd_labs import ODD
from tests.store import hostile

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_an_odd_lab_is_shown_as_text(lab_server: LabServer, page: Any, tmp_path: Path) -> None:
    lab, marker = lab_server.root / "from-a-stranger" / "odd", tmp_path / "it-ran"
    labmaker.make_lab(lab)
    for plant in ("a note of markup", "a name of markup", "odd ids", "a manifest of markup", "a note of other types"):
        ODD[plant](lab, tmp_path)
    hostile.PLANTS["submodule"].place(lab, marker)
    try:
        sidebar = show(page, "from-a-stranger/odd")
        sidebar.get_by_role("note").filter(has_text="submodule sub").wait_for()
        for tab in ("Rejected", "Pending", "Promoted"):
            sidebar.get_by_role("tab", name=re.compile(tab)).click()
            sidebar.get_by_role("tab", name=re.compile(tab), selected=True).wait_for()
        assert page.evaluate("window.hacked") is None
        assert not sidebar.locator("img[src=x]").count() and not marker.exists()
    finally:
        shutil.rmtree(lab.parent)
