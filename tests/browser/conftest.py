"""A real JupyterLab and a real browser, for the tests of the sidebar and of the notebooks.

`lab_server` starts JupyterLab once a session in a folder of its own, with the extension of this checkout (not an
installed copy). `page` is a clean page with JupyterLab open. Where Chromium, playwright or JupyterLab are
absent, the tests skip and say what is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "server"))  # labmaker

from labdriver import PATIENCE_MS, USUAL, LabServer, open_lab, running_browser, running_lab


@pytest.fixture(scope="package")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """JupyterLab in a root of its own."""
    pytest.importorskip("jupyterlab", reason="needs the 'lab' extra")
    with running_lab(tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("root")) as server:
        yield server


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium, once for all tests."""
    with running_browser() as chromium:
        yield chromium


@pytest.fixture(scope="package")
def context(browser: Any) -> Iterator[Any]:
    """One browser profile for all tests; a page of JupyterLab takes long to load."""
    context = browser.new_context(viewport=USUAL, locale="en-US", accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


@pytest.fixture(scope="package")
def shared_page(context: Any, lab_server: LabServer) -> Any:
    """JupyterLab, open and ready; `page` cleans it up before each test."""
    return open_lab(context, lab_server)


@pytest.fixture
def page(shared_page: Any) -> Any:
    """JupyterLab with nothing open: no dialog, no tab, no kernel, the light theme, the usual size."""
    page = shared_page
    page.set_viewport_size(USUAL)
    while page.locator(".jp-Dialog").count():
        page.keyboard.press("Escape")
        page.locator(".jp-Dialog").first.wait_for(state="detached")
    page.evaluate(
        """async () => {
            const { commands, serviceManager, shell } = window.jupyterapp;
            await serviceManager.sessions.shutdownAll();
            for (const widget of [...shell.widgets('main')]) {
                widget.dispose();
            }
            await commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' });
        }"""
    )
    return page
