"""``skill/procedure``: how to do a sort of task, shown when such a task comes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from harnesslab.harness.bm25 import BM25
from harnesslab.harness.context import Context, Draft
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.protocol import render
from harnesslab.harness.regexes import Regex


class Shot(Params):
    """One step of a demonstration."""

    observation: str = Field(default="", max_length=5000, description="what the agent saw; may be empty")
    action: str | dict[str, Any] = Field(description="what it did: text, or a tool call with `name` and `arguments`")


class ProcedureParams(Params):
    """Parameters of ``procedure``."""

    text: str = Field(default="", max_length=20_000, description="the procedure")
    demonstration: tuple[Shot, ...] = Field(default=(), max_length=50, description="a worked example, step by step")
    task: str = Field(default="", max_length=5000, description="the instruction of the demonstration")
    retrieve: Literal["bm25", "match", "always"] = Field(
        default="bm25",
        description="`bm25`: ranked by words shared with the instruction, among all procedures; `match`: by `match`; "
        "`always`: whenever the trigger `when` holds",
    )
    match: Regex | None = Field(default=None, description="with `retrieve: match`: found in the instruction")
    keywords: str = Field(default="", max_length=2000, description="further words for BM25 to find it by")
    top: int = Field(default=1, ge=1, description="with BM25: shown if it is among this many best ones")
    min_score: float = Field(default=0.5, ge=0, description="with BM25: minimum score")
    place: Literal["system", "before"] = Field(default="system", description="system message or before the observation")

    @model_validator(mode="after")
    def _complete(self) -> ProcedureParams:
        if not self.text.strip() and not self.demonstration:
            raise PydanticCustomError("value_error", "set text or demonstration; otherwise there is nothing to show")
        if (self.retrieve == "match") != (self.match is not None):
            raise PydanticCustomError("value_error", "set match and retrieve: match together")
        return self


@register
class Procedure(Kind[ProcedureParams]):
    """A procedure and, if given, a worked example in the form that the protocol asks for.

    BM25 ranks all procedures of the harness that use it, by their text, task and keywords.
    """

    kind = "procedure"
    layers = ("skill",)
    Params = ProcedureParams
    example = """\
kind: procedure
about: how to answer a question that asks for the largest value
params:
  keywords: highest largest most maximum top
  text: |
    1. Select the asked column only.
    2. ORDER BY the compared column DESC and LIMIT 1.
  task: Which ship carries the most passengers?
  demonstration:
    - action: {name: execute_sql, arguments: {query: SELECT ship FROM ferries ORDER BY passengers DESC LIMIT 1}}
"""
    _index: _Index | None = None

    @classmethod
    def bind(cls, members: Sequence[Procedure]) -> None:
        """Index the procedures of one harness together."""
        index = _Index([member for member in members if member.params.retrieve == "bm25"])
        for member in members:
            member._index = index

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Add the procedure where it applies."""
        if not self._applies(context.instruction):
            return None
        text = "\n\n".join(part for part in (self.params.text.strip(), self._example(context)) if part)
        return draft.add(system=text) if self.params.place == "system" else draft.add(before=text)

    def _applies(self, instruction: str) -> bool:
        params = self.params
        if params.retrieve == "always":
            return True
        if params.retrieve == "match":
            return params.match is not None and params.match.search(instruction) is not None
        ranked = self._index.ranked(instruction) if self._index is not None else ()
        place = next((i for i, (name, _) in enumerate(ranked) if name == self.name), None)
        return place is not None and place < params.top and ranked[place][1] >= params.min_score

    def _example(self, context: Context) -> str:
        if not self.params.demonstration:
            return ""
        lines = ["Example:", self.params.task]
        for shot in self.params.demonstration:
            lines += [shot.observation, render(shot.action, context.protocol, context.tools)]
        return "\n".join(line for line in lines if line)


class _Index:
    """BM25 over the procedures of a harness. Remembers the last few instructions: an episode asks in every step."""

    def __init__(self, members: Sequence[Procedure]) -> None:
        self._names = [member.name for member in members]
        texts = [f"{m.params.text} {m.params.task} {m.params.keywords} {m.about}" for m in members]
        self._bm25 = BM25(texts)
        self.ranked = lru_cache(maxsize=128)(self._ranked)

    def _ranked(self, instruction: str) -> tuple[tuple[str, float], ...]:
        """(name, score), best first; ties by file name."""
        scored = zip(self._names, self._bm25.scores(instruction), strict=True)
        return tuple(sorted(scored, key=lambda pair: -pair[1]))
