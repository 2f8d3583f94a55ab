"""``LLM``: any endpoint that speaks the OpenAI API, and the ways to make the other backbones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harnesslab.llm.body import Sampling
from harnesslab.llm.control import Null, RandomControl, Script, Scripted
from harnesslab.llm.record import Recording


class LLM:
    """placeholder"""

    @staticmethod
    def local(
        name_or_gguf: str | Path,
        *,
        threads: int | None = None,
        context: int = 4096,
        cache_prompt: bool = False,
        temperature: float = 0.0,
        max_tokens: int = 128,
        seed: int = 0,
        cache: str | Path | Recording | None = None,
    ) -> "LocalLLM":
        """A frozen model in this process, on the embedded llama.cpp (extra ``local``).

        ``name_or_gguf``: a name of ``harnesslab models list``, or a path to a GGUF file. ``threads``: measured when
        the model is loaded, unless given here or in HARNESSLAB_THREADS. ``context``: tokens of prompt and reply together.
        ``cache_prompt``: reuse the prefix of the last prompt; faster, but it changes the numbers, so a replay of
        a single step need not give the same reply. ``cache``: a recording, see :class:`Recording`.
        """
        from harnesslab.llm.local import LocalLLM

        return LocalLLM(
            name_or_gguf,
            threads=threads,
            context=context,
            cache_prompt=cache_prompt,
            sampling=Sampling(temperature, max_tokens, seed, {"cache_prompt": cache_prompt}),
            recording=as_recording(cache),
        )

    @staticmethod
    def random(seed: int = 0) -> RandomControl:
        """The random control."""
        return RandomControl(seed)

    @staticmethod
    def scripted(script: Script | Sequence[str]) -> Scripted:
        """Replies from a function of the messages, or from a list."""
        return Scripted(script)

    @staticmethod
    def null(text: str = "") -> Null:
        """A constant reply."""
        return Null(text)


def as_recording(cache: str | Path | Recording | None) -> Recording | None:
    """A recording from a path; None stays none."""
    return Recording.open(cache) if isinstance(cache, (str, Path)) else cache
