"""Hooks the handlers into a running Jupyter server."""

from __future__ import annotations

import atexit
from pathlib import Path
from typing import Any

from harnesslab.server.handlers import Shared, add_handlers


def load(server_app: Any) -> None:
    """Register the routes under `/harnesslab/`, for the folder that the server was started in."""
    # Contents managers that keep no files (remote ones) have no root_dir; the server's own root is the best guess then.
    root = getattr(server_app.contents_manager, "root_dir", "") or server_app.root_dir
    shared = Shared(Path(root).expanduser())
    add_handlers(server_app.web_app, shared)
    atexit.register(shared.close)
    server_app.log.info("harnesslab: serving labs below %s", root)
