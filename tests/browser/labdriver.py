"""Starts a real JupyterLab and a real browser, and drives them. For tests and benchmarks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
TOKEN = "for-tests-only"
LOG = "log.txt"
START_S = 240
"""How long JupyterLab may take to start; the first start on a cold and busy machine reads some 10,000 files."""
SETTINGS = {
    # The news toast would cover what is tested.
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
}
USUAL = {"width": 1400, "height": 900}
"""The size of the page, in pixels."""
PATIENCE_MS = 30_000
"""How long the browser waits for something to appear; the machines of CI are slow."""
LOAD_MS = 4 * PATIENCE_MS
"""How long the page of JupyterLab may take to load and to start: megabytes of scripts, the first time compiled."""


@dataclass(frozen=True)
class LabServer:
    """A running JupyterLab."""

    url: str
    root: Path
    home: Path
    pid: int

    @property
    def log(self) -> Path:
        """What it has printed."""
        return self.home / LOG

    def address(self, query: str = "reset", workspace: str = "default") -> str:
        """The address of the lab page; by default in a fresh workspace.

        Pages that are open at once need workspaces of their own, or each saves its layout over the other's: a page finds out
        by itself that another one has its workspace, but only if that one answers in time.
        """
        return f"{self.url}lab/workspaces/{workspace}?token={TOKEN}&{query}"


@contextlib.contextmanager
def running_lab(home: Path, root: Path) -> Iterator[LabServer]:
    """JupyterLab with this checkout's extension, for the folder `root`; its own files go to `home`."""
    _link_extension(home / "data" / "labextensions" / "harnesslab-labextension")
    _write_settings(home / "settings")
    port = _free_port()
    with (home / LOG).open("wb") as log:
        process = subprocess.Popen(_command(port, root), env=_environment(home), stdout=log, stderr=log, cwd=root)
        server = LabServer(f"http://127.0.0.1:{port}/", root, home, process.pid)
        try:
            _wait_until_up(server, process)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def running_browser() -> Iterator[Any]:
    """Chromium, without a window."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the 'test' extra")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on PATH (apt install chromium)")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        yield chromium
        chromium.close()


def open_lab(context: Any, server: LabServer, query: str = "reset", workspace: str = "default") -> Any:
    """A new page with JupyterLab in it; see :meth:`LabServer.address`."""
    page = context.new_page()
    page.goto(server.address(query, workspace), timeout=LOAD_MS)
    wait_for_lab(page)
    return page


def wait_for_lab(page: Any) -> None:
    """Until JupyterLab has started and its layout is restored."""
    page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=LOAD_MS)
    # JupyterLab may navigate once more on its own; a function that is waited for survives that, an evaluation does not.
    page.wait_for_function("window.jupyterapp?.restored.then(() => true)", timeout=LOAD_MS)


def run_command(page: Any, command: str, args: dict[str, Any] | None = None) -> None:
    """Run a command of JupyterLab, as its palette would."""
    page.evaluate("([id, args]) => { void window.jupyterapp.commands.execute(id, args); }", [command, args or {}])


def save_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a Python notebook of code cells; folders are made."""
    nbformat = pytest.importorskip("nbformat", reason="needs the 'lab' extra")
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)


def set_theme(page: Any, theme: str) -> None:
    """Change the theme and wait until it is on: `JupyterLab Light`, `JupyterLab Dark`, ..."""
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")


def _command(port: int, root: Path) -> list[str]:
    return [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}",
        "--ServerApp.jpserver_extensions={'harnesslab.server': True}", "--LabApp.extension_manager=readonly",
        "--expose-app-in-browser",
    ]  # fmt: skip


def _environment(home: Path) -> dict[str, str]:
    # JUPYTER_PATH goes before everything installed, so that an older installed copy of the extension cannot shadow this one.
    places = {
        "JUPYTER_PATH": "data", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "IPYTHONDIR": "ipython",
    }  # fmt: skip
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "envs"), *filter(None, [os.environ.get("PYTHONPATH")])])
    places_env = {name: str(home / folder) for name, folder in places.items()}
    return {**os.environ, **places_env, "PYTHONPATH": paths, "GIT_CONFIG_GLOBAL": os.devnull}


def _link_extension(target: Path) -> None:
    built = REPOSITORY / "harnesslab" / "labextension"
    if not (built / "package.json").is_file():
        pytest.skip("the extension is not built (run `jlpm build:prod` in extension/)")
    target.parent.mkdir(parents=True)
    target.symlink_to(built, target_is_directory=True)


def _write_settings(folder: Path) -> None:
    for name, values in SETTINGS.items():
        path = folder / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(server: LabServer, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.url}api/status?token={TOKEN}", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{server.log.read_text(encoding='utf-8', errors='replace')[-4000:]}")
