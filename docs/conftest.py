"""Runs the code on the pages: each page in its own folder, ``python`` and ``bash`` blocks from top to bottom."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser, SkipParser

from harnesslab.harness import kind as kinds
from tests.llm.fake_openai import serve

HERE = Path(__file__).parent


def _bash(example: Example) -> None:
    done = subprocess.run(
        ["bash", "-e", "-c", example.parsed], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "ENDPOINT": example.namespace["endpoint"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _setup(namespace: dict[str, Any]) -> None:
    stack = namespace["stack"] = contextlib.ExitStack()
    stack.callback(os.chdir, Path.cwd())
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="harnesslab-docs-", ignore_cleanup_errors=True))
    shutil.copytree(HERE / "examples", folder, dirs_exist_ok=True)
    os.chdir(folder)
    stack.callback(os.environ.__setitem__, "PATH", os.environ["PATH"])
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # A kind that a page registers would be known to every later test of the process.
    known = kinds.known_kinds()
    stack.callback(kinds._KINDS.update, known)
    stack.callback(kinds._KINDS.clear)
    namespace["importlib"] = importlib  # for conditions of `% skip`
    namespace["endpoint"] = stack.enter_context(serve()).url


def _teardown(namespace: dict[str, Any]) -> None:
    for value in namespace.values():
        if type(value).__name__ == "Lab":
            value.close()
    namespace["stack"].close()


pytest_collect_file = Sybil(
    parsers=[SkipParser(), PythonCodeBlockParser(), CodeBlockParser(language="bash", evaluator=_bash)],
    patterns=["start.md", "loop.md", "concepts/*.md", "howto/*.md"],
    setup=_setup,
    teardown=_teardown,
).pytest()
