"""Frozen LLMs: any OpenAI-compatible endpoint, embedded local models, record and replay, the meter."""

from harnesslab.llm.cached import Cached
from harnesslab.llm.client import LLM
from harnesslab.llm.meter import Budget, Meter, Price
from harnesslab.llm.models import get_model, list_models
from harnesslab.llm.record import Recording
from harnesslab.llm.transport import Connection
from harnesslab.llm.types import Backbone, Completion, MinimalBackbone, Request
from harnesslab.llm.wrapper import Wrapper

__all__ = [
    "LLM",
    "Backbone",
    "Budget",
    "Cached",
    "Completion",
    "Connection",
    "Meter",
    "MinimalBackbone",
    "Price",
    "Recording",
    "Request",
    "Wrapper",
    "get_model",
    "list_models",
]
