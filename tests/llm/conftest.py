"""Fixtures of the backbone tests: the fake server, a request, and the real small model where it is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harnesslab.llm import Request
from harnesslab.llm.models import MODELS, models_folder
from tests.llm.fake_openai import FakeOpenAI, serve


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    with serve() as server:
        yield server


@pytest.fixture
def request_() -> Request:
    return Request(messages=({"role": "system", "content": "Act."}, {"role": "user", "content": "You see an apple."}))


@pytest.fixture(scope="session")
def smollm(request: pytest.FixtureRequest) -> Path:
    """The real SmolLM2-135M file, else a skip."""
    path = models_folder() / MODELS["smollm2-135m"].file
    if not path.is_file():
        pytest.skip(f"{path} is absent: run 'harnesslab models get smollm2-135m' or set HARNESSLAB_MODELS")
    return path
