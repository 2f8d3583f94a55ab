"""The learning curve panel: the verdicts in git, as a picture and as a table."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from harnesslab.extras import comes_with
from harnesslab.lab import Lab
from harnesslab.markup import Markup, page
from harnesslab.panels.base import Panel
from harnesslab.rollout.records import Run


class CurvePanel(Panel):
    """Shows how the baseline grew. ``controls``: runs of the random control under some of the harnesses."""

    def __init__(self, lab: Lab, controls: Sequence[Run] = ()):
        with comes_with("lab"):
            import ipywidgets as widgets

        super().__init__()
        self.lab, self.controls = lab, tuple(controls)
        self._view = widgets.HTML()
        self._again = self.button("Read again", "Refresh from git", lambda: None)
        self.box.children = [self._view, self._again, self.error]
        self.redraw()

    def static(self) -> Markup:
        rows = self.lab.curve()
        return page(_picture(self.lab, self.controls) if len(rows) else Markup(), Markup(rows._repr_html_()))

    def plain(self) -> str:
        return repr(self.lab.curve())

    def redraw(self) -> None:
        self._view.value = self.static()


def _picture(lab: Lab, controls: Sequence[Run]) -> Markup:
    from harnesslab.analysis.plots import learning_curve

    alt = "Learning curve: solved share of the baseline after each verdict; the table below has the numbers."
    return picture(learning_curve(lab, controls=controls), alt)


def picture(figure: Any, alt: str) -> Markup:
    """A matplotlib Figure inside the page."""
    from harnesslab.analysis.plots import png

    data = base64.b64encode(png(figure)).decode("ascii")
    return Markup("<img alt='{}' src='data:image/png;base64,{}' style='max-width:100%'>").format(alt, data)
