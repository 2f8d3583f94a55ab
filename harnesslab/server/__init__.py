"""The Jupyter Server extension behind the sidebar. Nothing of Jupyter is imported before the server loads it."""

from __future__ import annotations

from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "harnesslab.server"}]


def _load_jupyter_server_extension(server_app: Any) -> None:
    """Called by the Jupyter server when it starts."""
    from harnesslab.server.extension import load

    load(server_app)
