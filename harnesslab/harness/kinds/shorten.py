"""``contract/shorten``: of a long observation, what matters."""

from __future__ import annotations

from pydantic import Field

from harnesslab.harness.context import Context
from harnesslab.harness.kind import Kind, Params, register
from harnesslab.harness.prompt import clip
from harnesslab.harness.regexes import Regex


class ShortenParams(Params):
    """Parameters of ``shorten``."""

    chars: int = Field(ge=50, description="longer observations are shortened to about this length")
    keep: Regex | None = Field(
        default=None, description="first drop the lines in which this is not found; by default cut the middle"
    )


@register
class Shorten(Kind[ShortenParams]):
    """A long observation is shortened when it arrives: lines that do not matter are dropped, then the middle is cut.

    What was cut is said in its place. The record keeps the whole observation.
    """

    kind = "shorten"
    layers = ("contract",)
    Params = ShortenParams
    example = """\
kind: shorten
about: a page of fifty products drowns the instruction
params:
  chars: 1500
  keep: '(?i)price|\\[|page \\d+'
"""

    def observe(self, context: Context, observation: str) -> str | None:
        """Drop lines, then cut the middle."""
        params = self.params
        if len(observation) <= params.chars:
            return None
        if params.keep is not None:
            lines = observation.splitlines()
            kept = [line for line in lines if params.keep.search(line)]
            if kept and len(kept) < len(lines):
                observation = "\n".join([*kept, f"[{len(lines) - len(kept)} other lines left out]"])
        return clip(observation, params.chars)
