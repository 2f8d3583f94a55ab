"""The environment that breaks on demand, in processes of this Python."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harnesslab.rollout.process.environment import ProcessEnvironment
from harnesslab.rollout.registry import load_environment

FAULTY = str(Path(__file__).parent / "faulty")


@pytest.fixture
def faulty() -> Iterator[Callable[..., ProcessEnvironment]]:
    """Makes the faulty environment with options, and ends its processes after the test."""
    made: list[Any] = []

    def make(**options: Any) -> ProcessEnvironment:
        made.append(load_environment(FAULTY, **options))
        return made[-1]

    yield make
    for environment in made:
        environment.close()


def is_there(pid: int) -> bool:
    """Is there a process of that id that runs (a zombie does not)?"""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return False
    # The first thread of a killed process may be a zombie while others still hold its files.
    return state != "Z" or threads > 1


def gone_soon(pid: int, seconds: float = 10.0) -> bool:
    """Wait until the process is gone; false where it stays."""
    until = time.monotonic() + seconds
    while is_there(pid):
        if time.monotonic() > until:
            return False
        os.sched_yield()
        time.sleep(0.01)
    return True
