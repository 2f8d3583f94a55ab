"""Fixtures that start a real JupyterLab and a Chromium for it.

Import them into a test module: ``from tests.browser.lab_server import chromium, jupyter_lab``. Both skip where JupyterLab,
playwright or a Chromium is missing. ``HARNESSLAB_CHROMIUM`` names another browser than the one on PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TOKEN = "test"
START_SECONDS = 120
# The news toast lies over the page, and its setting cannot be given on the command line.
OVERRIDES = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lab:
    """A running JupyterLab: its address and the folder that it serves."""

    url: str
    root: Path

    def address(self, notebook: str) -> str:
        """Where a notebook opens in a fresh workspace."""
        return f"{self.url}/lab/tree/{notebook}?token={TOKEN}&reset"


@pytest.fixture(scope="module")
def jupyter_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab with settings and data of its own."""
    pytest.importorskip("jupyterlab")
    home = tmp_path_factory.mktemp("jupyter")
    root = home / "root"
    root.mkdir()
    settings = home / "app" / "settings"
    settings.mkdir(parents=True)
    port = _free_port()
    with (home / "lab.log").open("wb") as log:
        process = subprocess.Popen(_command(port, root), cwd=root, env=_environment(home), stdout=log, stderr=log)
    try:
        _wait(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", process, home / "lab.log")
        yield Lab(f"http://127.0.0.1:{port}", root)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = os.environ.get("HARNESSLAB_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on PATH, and HARNESSLAB_CHROMIUM names none")
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield browser
        browser.close()


def open_notebook(page: Any, lab: Lab, notebook: str) -> None:
    """Open a notebook and wait until its kernel can be used."""
    page.goto(lab.address(notebook))
    page.locator("#jupyterlab-splash").wait_for(state="detached", timeout=60_000)
    page.locator(".jp-Notebook").wait_for(timeout=60_000)
    # The toolbar says idle before the session is connected; the status bar does not.
    page.locator("#jp-bottom-panel").get_by_text("| Idle").wait_for(timeout=90_000)


def run_all(page: Any) -> None:
    """Run all cells of the open notebook."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def _command(port: int, root: Path) -> list[str]:
    return [
        sys.executable, "-m", "jupyter", "lab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}",
        "--LabApp.extension_manager=readonly",
    ]  # fmt: skip


def _environment(home: Path) -> dict[str, str]:
    data = home / "data"
    lab = data / "lab" / "settings"
    lab.mkdir(parents=True)
    (lab / "overrides.json").write_text(json.dumps(OVERRIDES), encoding="utf-8")
    folders = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "user-data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
    }
    made = {name: str(folder) for name, folder in folders.items()}
    return {**os.environ, **made, "JUPYTERHUB_USER": "Ada", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError("JupyterLab did not start:\n" + log.read_text(encoding="utf-8", errors="replace")[-3000:])
