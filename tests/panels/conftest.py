"""A trainer in the corridor whose model and files say hostile things."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import harnesslab as hl

pytest.importorskip("ipywidgets")

EVIL = "<img src=x onerror=alert(1)>"
RIGHT = "kind: prompt\nabout: Show the way.\nparams:\n  text: Go right.\n"
USELESS = f"kind: prompt\nabout: Say {EVIL}.\nparams:\n  text: Hello {EVIL}.\n"


def walker(messages: Sequence[Mapping[str, Any]]) -> str:
    """Goes right where it is told to, else says something that is no action."""
    told = any("Go right." in str(message["content"]) for message in messages)
    return "Action: right" if told else f"Action: {EVIL}"


@pytest.fixture
def trainer(open_lab: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("JUPYTERHUB_USER", "Ada")
    estimator = hl.ManualEstimator(scan=False)
    return hl.Trainer(
        lab=open_lab(), llm=hl.LLM.scripted(walker), estimator=estimator, settings={"progress": False, "gate": 4}
    )


@pytest.fixture
def proposals(trainer: Any) -> Any:
    """[0] solves everything, [1] does nothing."""
    trainer.estimator.add_text("contract/right.yaml", RIGHT)
    trainer.estimator.add_text("contract/useless.yaml", USELESS)
    return trainer.propose()
