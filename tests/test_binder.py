"""What Binder needs: checked as far as that goes without Docker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
BINDER = REPOSITORY / "binder"
TUTORIAL = "notebooks/01_train_a_harness.ipynb"


def test_post_build_is_a_script_that_stops_at_errors() -> None:
    script = BINDER / "postBuild"
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n") and "set -euo pipefail" in text
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_post_build_uses_extras_and_commands_that_exist() -> None:
    import tomllib

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (BINDER / "postBuild").read_text(encoding="utf-8")
    assert '".[lab,local]"' in text and {"lab", "local"} <= set(project["optional-dependencies"])
    listed = subprocess.run(
        [sys.executable, "-m", "harnesslab", "models", "get", "--help"], capture_output=True, text=True, check=False
    )
    assert listed.returncode == 0, listed.stderr


def test_jupyterlab_is_the_one_that_the_extension_needs() -> None:
    import tomllib

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [line for line in project["optional-dependencies"]["lab"] if line.startswith("jupyterlab>")]
    assert wanted and wanted[0] in (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()


def test_the_workspace_opens_what_is_there() -> None:
    workspace = json.loads((BINDER / "workspace.json").read_text(encoding="utf-8"))
    layout = workspace["data"]["layout-restorer:data"]
    assert layout["left"]["current"] == "harnesslab-sidebar"
    assert layout["main"]["current"] == f"notebook:{TUTORIAL}"
    assert (REPOSITORY / TUTORIAL).is_file()


def test_the_workspace_can_be_imported(tmp_path: Path) -> None:
    pytest.importorskip("jupyterlab", reason="needs the 'lab' extra")
    env = {**os.environ, "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "jupyter", "lab", "workspaces", "import", str(BINDER / "workspace.json")]
    subprocess.run(command, check=True, env=env, capture_output=True)
    assert len(list(tmp_path.glob("*.jupyterlab-workspace"))) == 1


def test_repo2docker_understands_it(tmp_path: Path) -> None:
    pytest.importorskip("repo2docker", reason="needs the 'test' extra")
    # Only the folder counts for what is found; the checkout may hold gigabytes that repo2docker would look through.
    shutil.copytree(BINDER, tmp_path / "binder")
    command = [
        sys.executable,
        "-m",
        "repo2docker",
        "--no-build",
        "--debug",
        "--user-id",
        "1000",
        "--user-name",
        "jovyan",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-2000:]
    for words in ("binder/postBuild", "bubblewrap", "binder/requirements.txt", "3.12"):
        assert words in said, words
