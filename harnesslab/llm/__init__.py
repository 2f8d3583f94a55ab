"""Frozen LLMs: any OpenAI-compatible endpoint, embedded local models, record and replay, the meter."""

from harnesslab.llm.client import LLM
from harnesslab.llm.record import Recording
from harnesslab.llm.types import Backbone, Completion, Request

__all__ = ["LLM", "Backbone", "Completion", "Recording", "Request"]
