"""The miner that proposes ``quote``: for errors about names in statements that the agent has seen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harnesslab import Idea, Variant, View
from harnesslab.rollout.taxonomy import CONTRACT, is_error

_ABOUT_NAMES = re.compile(r"(?i)\bsyntax\b|\bno such\b|\bunknown\b|\bcolumn\b|\bidentifier\b|\bnear\b|does not exist")
_BACKTICKS = re.compile(r"(?i)mysql|mariadb|`")


def mine(view: View) -> Iterator[Idea]:
    """Fires for tools that take one text and answered with errors about names; replay finds the statements it repairs.

    The database that the errors come from decides which quotes are tried first.
    """
    tools: dict[str, list[str]] = {}
    for _, step in view.failed_steps():
        if is_error(step) and step.tool and _ABOUT_NAMES.search(step.result):
            tools.setdefault(step.tool, []).append(step.result)
    for tool in sorted(tools, key=lambda name: (-len(tools[name]), name))[:1]:
        mysql = sum(bool(_BACKTICKS.search(text)) for text in tools[tool]) * 2 > len(tools[tool])
        yield Idea(
            kind="quote",
            layer="action",
            stem="quote",
            about="Quote table and column names in SQL",
            variants=tuple(
                Variant({"dialect": dialect}, when={"tool": tool})
                for dialect in (("mysql", "sqlite") if mysql else ("sqlite", "mysql"))
            ),
            labels=(CONTRACT,),
            strength=0.5,
        )
