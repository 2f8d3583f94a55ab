"""A child that cannot be started is nobody's fault but the machine's: nothing is charged, and one sentence says why."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import warnings
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfinementUnavailable, WeakConfinement
from harnesslab.harness import Pipeline, load_harness
from harnesslab.harness.confined import box, walls
from harnesslab.rollout.env import Task
from harnesslab.rollout.episode import play
from tests.worlds import Corridor

TASK = Task("t", "search", "odd", seed=1, options={"length": 2})
FILES = {"harness.toml": b'name = "t"\n', "action/x.py": b"def realize(context, proposal): pass\n"}


def episode() -> Any:
    llm = hl.LLM.null("Action: right")
    return asyncio.run(play(Corridor(), TASK, Pipeline(load_harness(FILES)), llm, budget=4))


COMMANDS = {
    "not there": (["/nowhere/python"], "No such file"),
    "ends at once": ([sys.executable, "-c", "raise SystemExit('the kernel says no')"], "the kernel says no"),
    "talks nonsense": ([sys.executable, "-c", "import os, sys; os.write(int(sys.argv[1]), b'\\0\\0\\0\\2{}')"], "does not start"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::harnesslab.errors.WeakConfinement")
@pytest.mark.parametrize("name", COMMANDS)
def test_what_does_not_start_stops_the_run_and_charges_nobody(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, said = COMMANDS[name]
    monkeypatch.setattr(walls, "bubblewrap", lambda files_mb: None)
    monkeypatch.setattr(walls, "direct", lambda: command)
    with pytest.raises(ConfinementUnavailable, match=said):
        episode()


def test_without_bubblewrap_a_warning_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "bubblewrap", lambda files_mb: None)
    box._warn_once.cache_clear()
    with pytest.warns(WeakConfinement, match=r"bubblewrap.*they can read your files"):
        assert episode().solved
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert episode().solved


def test_a_bwrap_that_does_not_work_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    walls.bubblewrap.cache_clear()
    try:
        assert walls.bubblewrap(16) is None
        # One that lies in the current folder, such as a lab, is not looked up.
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PATH", f".{os.pathsep}")
        walls.bubblewrap.cache_clear()
        monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("it was run"))
        assert walls.bubblewrap(16) is None
    finally:
        walls.bubblewrap.cache_clear()


def test_windows_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls.os, "name", "nt")
    with pytest.raises(ConfinementUnavailable, match=r"WSL, or unconfined=True"):
        walls.check_possible()
