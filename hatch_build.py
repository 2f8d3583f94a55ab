"""Says in one sentence what is missing when the extension has to be built and cannot be."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = Path("harnesslab") / "labextension" / "package.json"


class NodeNeeded(BuildHookInterface[Any]):
    """Runs before the hook that builds the extension, which would fail with a traceback."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stop where the prebuilt extension is absent and there is no node to build it."""
        if (Path(self.root) / BUILT).is_file():
            # skip-if-exists holds for wheels only: without this, `pip install -e .` would build again where there is
            # a node, and leave a changed checkout, and fail where there is none.
            os.environ.setdefault("SKIP_JUPYTER_BUILDER", "1")
        elif shutil.which("node") is None:
            raise SystemExit(
                f"{BUILT.as_posix()} is missing, and building it needs Node.js 20.19 or newer, which was not found. "
                "Install Node.js, or take the folder harnesslab/labextension from the repository (it is committed)."
            )
