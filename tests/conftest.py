"""Fixtures that all tests share. No test may see the user's git identity, models or data by accident."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from tests.worlds import CorridorWorld


@pytest.fixture
def open_lab(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens labs for the corridor (or another environment) under the test's own folder, and closes them after it."""
    opened: list[Any] = []

    def open_(name: str = "lab", env: Any = None, **options: Any) -> Any:
        opened.append(hl.Lab.open(tmp_path / name, env=env if env is not None else CorridorWorld(), **options))
        return opened[-1]

    yield open_
    for lab in opened:
        lab.close()


def always(action: str) -> Any:
    """A scripted backbone that does the same thing in every step."""
    return hl.LLM.scripted(lambda messages: f"Action: {action}", name=f"always {action}")
