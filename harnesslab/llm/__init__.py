"""Frozen LLMs: any OpenAI-compatible endpoint, embedded local models, record and replay, the meter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnesslab.lazy import lazily
from harnesslab.llm.types import Backbone, Completion, MinimalBackbone, Request

if TYPE_CHECKING:
    from harnesslab.llm.cached import Cached as Cached
    from harnesslab.llm.client import LLM as LLM
    from harnesslab.llm.meter import Budget as Budget
    from harnesslab.llm.meter import Meter as Meter
    from harnesslab.llm.meter import Price as Price
    from harnesslab.llm.models import get_model as get_model
    from harnesslab.llm.models import list_models as list_models
    from harnesslab.llm.record import Recording as Recording
    from harnesslab.llm.transport import Connection as Connection
    from harnesslab.llm.wrapper import Wrapper as Wrapper

_LAZY = {
    "cached": ("Cached",),
    "client": ("LLM",),
    "meter": ("Budget", "Meter", "Price"),
    "models": ("get_model", "list_models"),
    "record": ("Recording",),
    "transport": ("Connection",),
    "wrapper": ("Wrapper",),
}
"""Names imported on first use, so that a step needs neither SQLite nor a client."""

_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = ["Backbone", "Completion", "MinimalBackbone", "Request", *_HOME]


__getattr__ = lazily(__name__, _LAZY)


def __dir__() -> list[str]:
    """Lazy names too."""
    return sorted(__all__)
