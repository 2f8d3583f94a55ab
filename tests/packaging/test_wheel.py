"""What a user gets: the wheel, in an empty environment, on a machine without node.

Packages come from the registry that pip is set up for; where none can be reached, these tests skip.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXTENSION = "harnesslab-labextension"
UNREACHABLE = re.compile(r"connection broken|Failed to establish|NameResolution|Read timed out|ProxyError", re.I)
START_S = 120

pytestmark = pytest.mark.timeout(600)


def pip(python: Path | str, *args: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run pip; skips where no registry answers."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--retries=1", "--timeout=15", *args]
    env = {**os.environ, "PYTHONPATH": ""} | ({"PATH": path} if path else {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode and UNREACHABLE.search(done.stderr):
        pytest.skip("the package registry cannot be reached")
    return done


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with git and nothing else."""
    folder = tmp_path_factory.mktemp("tools")
    git = shutil.which("git")
    assert git is not None
    (folder / "git").symlink_to(git)
    assert shutil.which("node", path=str(folder)) is None
    return str(folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, tools: str) -> Path:
    """The wheel of this checkout, built without node."""
    target = tmp_path_factory.mktemp("wheel")
    done = pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(target), str(REPOSITORY), path=tools)
    assert done.returncode == 0, done.stderr[-3000:]
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path, tools: str) -> Path:
    """The folder of the commands of an empty environment in which the wheel and JupyterLab were installed."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    # Not the whole extra `lab`: pandas, scipy and matplotlib have no part in the sidebar and take minutes.
    done = pip(folder / "bin" / "python", "install", "--no-compile", str(wheel), "jupyterlab>=4.6,<5", path=tools)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "bin"


def environment(installed: Path, tools: str, home: Path) -> dict[str, str]:
    """Only the new environment and git; nothing of the user's or of this checkout."""
    return {"PATH": f"{installed}{os.pathsep}{tools}", "HOME": str(home), "LANG": "C.UTF-8"}


def test_the_wheel_holds_the_extension_and_no_leftovers(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    place = f"share/jupyter/labextensions/{EXTENSION}"
    for needed in (f"{place}/package.json", f"{place}/install.json", "harnesslab/server/openapi.yaml"):
        assert any(name.endswith(needed) for name in names), needed
    assert any(name.endswith("etc/jupyter/jupyter_server_config.d/harnesslab.json") for name in names)
    assert any(re.search(rf"{place}/static/remoteEntry\.\w+\.js$", name) for name in names)
    assert not [name for name in names if re.search(r"\.map$|node_modules|\.yarn|__pycache__|\.pyc$", name)]
    assert {name.split("/")[0] for name in names if ".d" not in name} == {"harnesslab", "harnesslab_envs"}


def test_jupyterlab_lists_the_extension(installed: Path, tools: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(installed / "jupyter"), "labextension", "list"],
        capture_output=True, text=True, check=True, env=environment(installed, tools, tmp_path), cwd=tmp_path,
    )  # fmt: skip
    line = next(line for line in (done.stdout + done.stderr).splitlines() if EXTENSION in line)
    assert "enabled" in line and "OK" in line and "jupyter-harnesslab" in line


def test_the_server_answers(installed: Path, tools: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    make = "import sys, harnesslab as hl; hl.Lab.open(sys.argv[1], env='kitchen')"
    env = environment(installed, tools, tmp_path)
    subprocess.run([str(installed / "python"), "-c", make, str(root / "kitchen")], check=True, env=env, cwd=tmp_path)
    with running_server(installed, env, root) as address:
        with urllib.request.urlopen(f"{address}harnesslab/labs?token=t", timeout=60) as answer:
            labs = json.load(answer)
        assert [item["path"] for item in labs["items"]] == ["kitchen"]
        with urllib.request.urlopen(f"{address}lab?token=t", timeout=60) as page:
            assert EXTENSION in page.read().decode("utf-8")


def test_without_node_and_without_the_build_it_says_what_to_do(tmp_path: Path, tools: str) -> None:
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "install.json"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "harnesslab").mkdir()
    shutil.copy(REPOSITORY / "harnesslab" / "_version.py", tmp_path / "harnesslab" / "_version.py")
    done = pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(tmp_path), path=tools)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "harnesslab/labextension/package.json is missing" in said and "Install Node.js" in said
    assert "Traceback" not in said


@contextlib.contextmanager
def running_server(installed: Path, env: dict[str, str], root: Path) -> Iterator[str]:
    """JupyterLab of the new environment in `root`; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        str(installed / "jupyter"), "lab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=t", f"--ServerApp.root_dir={root}",
    ]  # fmt: skip
    log = root.parent / "log.txt"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=out, cwd=root)
    address = f"http://127.0.0.1:{port}/"
    try:
        end = time.monotonic() + START_S
        while True:
            try:
                urllib.request.urlopen(f"{address}api/status?token=t", timeout=10).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail(
                        f"JupyterLab did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}"
                    )
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
