"""``LLM.local``: a GGUF model on the embedded llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harnesslab.download import file_digest
from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm.body import Constrain, Sampling
from harnesslab.llm.chat import ChatBackbone
from harnesslab.llm.embedded import Settings, engine_off_loop
from harnesslab.llm.failures import explain_local, local_cause
from harnesslab.llm.models import find_model
from harnesslab.llm.record import Recording
from harnesslab.llm.replies import to_completion
from harnesslab.llm.types import Completion


class LocalLLM(ChatBackbone):
    """A GGUF file in this process. Made by :meth:`harnesslab.llm.LLM.local`, which documents the arguments.

    Nothing is loaded before the first live reply: a replay needs neither the file nor xllamacpp.
    """

    def __init__(
        self,
        name_or_gguf: str | Path,
        *,
        threads: int | None,
        context: int,
        cache_prompt: bool,
        sampling: Sampling,
        recording: Recording | None,
    ):
        if threads is not None and threads < 1:
            raise ConfigError(f"threads={threads}: pass a whole number of at least 1, or None to measure")
        if context < 1:
            raise ConfigError(f"context={context}: pass a whole number of tokens")
        self._model_file = find_model(name_or_gguf)
        super().__init__(self._model_file.name, sampling, recording)
        self._threads, self._context, self._cache_prompt = threads, context, cache_prompt

    @property
    def spec(self) -> dict[str, Any]:
        return {
            "kind": "local",
            "model": self.model,
            "sampling": self._sampling.as_dict(),
            "context": self._context,
        }

    def live_identity(self) -> dict[str, Any]:
        return {
            **self.spec,
            "sha256": file_digest(self._path()),
            "server": f"llama.cpp (xllamacpp {_version()}), no flash attention",
        }

    def _constrain(self) -> Constrain:
        return "grammar"

    async def _ask(self, body: Mapping[str, Any]) -> Completion:
        settings = Settings(self._path(), self._threads, self._context, self._cache_prompt)
        loaded = await engine_off_loop(settings)
        raw, seconds = await loaded.ask(body)
        if raw.get("error"):
            message = explain_local(raw["error"], self.model, self._context)
            raise BackboneError(message, cause=local_cause(raw["error"]))
        return to_completion(raw, body, seconds=seconds, where=f"the local model '{self.model}'")

    def _path(self) -> Path:
        return self._model_file.require()

    def __repr__(self) -> str:
        return f"LLM.local({self.model!r})"


def _version() -> str:
    try:
        return version("xllamacpp")
    except PackageNotFoundError:
        return "not installed"
