"""The sidebar on a lab of somebody who wants their program to run: it is shown, with a warning, and can be acted on; nothing runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import labmaker
import pytest
from labdriver import LabServer
from test_sidebar import confirm, open_row, show

from tests.store import hostile

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

PLANTED = (
    "clean",
    "process",
    "smudge",
    "merge",
    "textconv",
    "external",
    "fsmonitor",
    "hooksPath",
    "pager",
    "alias",
    "include",
)


def test_a_hostile_lab_is_shown_with_a_warning_and_nothing_runs(
    lab_server: LabServer, page: Any, tmp_path: Path
) -> None:
    lab = lab_server.root / "from-a-stranger" / "kitchen"
    marker = tmp_path / "it-ran"
    labmaker.make_lab(lab)
    (lab / ".gitattributes").write_text("* filter=evil merge=evil diff=evil\n", encoding="utf-8")
    for name in PLANTED:
        hostile.PLANTS[name].place(lab, marker)
    try:
        sidebar = show(page, "from-a-stranger/kitchen")
        note = sidebar.get_by_role("note").filter(has_text="configures git with")
        note.wait_for()
        assert "filter.evil.clean" in note.inner_text() and "runs none of it" in note.inner_text()
        view = open_row(page, "Rejected", "regulation/stop")
        view.get_by_text("after: 1").first.wait_for()
        view = open_row(page, "Pending", "skill/recipe")
        view.get_by_role("button", name=re.compile("Promote|Accept")).first.click()
        confirm(page, "Promote", "looks harmless")
        page.get_by_role("tab", name=re.compile(r"Promoted \(3\)")).wait_for()
        assert (lab / "skill" / "recipe.yaml").read_text(encoding="utf-8").startswith("kind: procedure")
        view = open_row(page, "Rejected", "contract/base")
        view.get_by_role("button", name=re.compile("Retry")).click()
        confirm(page, "Retry")
        page.get_by_role("tab", name=re.compile(r"Pending \(3\)")).wait_for()
        assert not marker.exists()
    finally:
        shutil.rmtree(lab.parent)
