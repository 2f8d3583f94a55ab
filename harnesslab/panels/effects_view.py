"""The effects panel: what each intervention of the baseline has done, as a picture and as a table."""

from __future__ import annotations

from harnesslab.extras import comes_with
from harnesslab.lab import Lab
from harnesslab.markup import Markup, page
from harnesslab.panels.base import Panel
from harnesslab.panels.curve_view import picture


class EffectsPanel(Panel):
    """Shows ``lab.effects()``. ``backbone``: a model's name, by default that of the latest run."""

    def __init__(self, lab: Lab, backbone: str | None = None):
        with comes_with("lab"):
            import ipywidgets as widgets

        super().__init__()
        self.lab, self.backbone = lab, backbone
        self._view = widgets.HTML()
        self._again = self.button("Read again", "Estimate again from all episodes on record", lambda: None)
        self.box.children = [self._view, self._again, self.error]
        self.redraw()

    def static(self) -> Markup:
        found = self.lab.effects(self.backbone)
        alt = "Forest plot: the effect of each intervention with its interval; the table below has the numbers."
        return page(picture(found.plot(), alt) if len(found) else Markup(), Markup(found._repr_html_()))

    def plain(self) -> str:
        return repr(self.lab.effects(self.backbone))

    def redraw(self) -> None:
        self._view.value = self.static()
