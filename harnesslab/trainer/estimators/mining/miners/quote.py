"""Errors about names in statements that the agent has seen: quote them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnesslab.harness.kind import known_kinds
from harnesslab.rollout.taxonomy import CONTRACT, is_error
from harnesslab.trainer.estimators.mining.idea import Idea, Variant
from harnesslab.trainer.estimators.mining.view import View, tool_of

KIND = "quote"
_ABOUT_NAMES = re.compile(r"(?i)\bsyntax\b|\bno such\b|\bunknown\b|\bcolumn\b|\bidentifier\b|\bnear\b|does not exist")
_BACKTICKS = re.compile(r"(?i)mysql|mariadb|`")


def mine(view: View) -> Iterator[Idea]:
    """Fires for tools that take one text and answered with errors about names; replay finds the statements it mends.

    The quotes are those of the database that the errors speak of.
    """
    if KIND not in known_kinds():  # it is a plug-in
        return
    tools: dict[str, list[str]] = {}
    for _, step in view.failed_steps():
        if is_error(step) and tool_of(step) and _ABOUT_NAMES.search(step.result):
            tools.setdefault(tool_of(step), []).append(step.result)
    for tool in sorted(tools, key=lambda name: (-len(tools[name]), name))[:1]:
        first = (
            "mysql" if sum(bool(_BACKTICKS.search(text)) for text in tools[tool]) * 2 > len(tools[tool]) else "sqlite"
        )
        dialects = [first, "mysql" if first == "sqlite" else "sqlite"]
        yield Idea(
            kind=KIND,
            layer="action",
            stem="quote",
            about="Quote table and column names in SQL",
            variants=tuple(Variant({"dialect": dialect}, when={"tool": tool}) for dialect in dialects),
            labels=(CONTRACT,),
            strength=0.5,
        )
