"""Replies that hold an action in another form: find it there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import ACTION
from harnesslab.trainer.estimators.mining.idea import Idea, Variant
from harnesslab.trainer.estimators.mining.view import View

_KEYWORD = re.compile("[A-Z]{2,}")
_PARAGRAPH = r"(?:\A|(?<=\n\n)|(?<=:\n)|^```\w*\n)\K"
_NO_SENTENCE = r"(?!(?:(?!```|\n\s*\n).)*[.,:?!](?:\s|\Z))"
"""Up to a closing fence or an empty line, nothing ends as a sentence does."""
ABOUT = "Recover actions from replies in another format"


def mine(view: View) -> Iterator[Idea]:
    """Offers the rescue to any run; replay keeps it only where it finds actions in the failed replies.

    Where a tool takes one text, the words with which the texts given to it begin mark a bare argument.
    """
    variants = [
        Variant(
            params,
            about=f"{ABOUT}; pass a paragraph that starts with {clip(' or '.join(heads), 60)} to {clip(tool, 40)}",
        )
        for tool, heads, params in _bare(view)
    ]
    yield Idea(
        kind="rescue",
        layer="action",
        stem="rescue",
        about=ABOUT,
        variants=(*variants, Variant()),
        labels=(ACTION,),
        strength=0.5,
    )


def _bare(view: View) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """Tool, first words, parameters; never for a tool that ends episodes: a wrong guess there cannot be undone.

    Only a tool whose argument always begins with a keyword in capitals, such as SELECT: other words begin sentences, too.
    """
    for tool in view.tools or ():
        function = tool["function"]
        if function["name"] in view.finishers:
            continue
        properties = function["parameters"]["properties"]
        if [spec["type"] for spec in properties.values()] != ["string"]:
            continue
        argument = next(iter(properties))
        heads: dict[str, set[str]] = {}
        for episode in view.episodes:
            for step in episode.steps:
                # A call that got an error for a result had the right form all the same.
                if step.tool != function["name"] or step.invalid or not isinstance(step.action, dict):
                    continue
                said = str(step.action.get("arguments", {}).get(argument, ""))
                heads.setdefault((said.split() or [""])[0], set()).add(episode.task_id)
        words = sorted(head for head, tasks in heads.items() if len(tasks) > 1)
        if words and all(_KEYWORD.fullmatch(head) for head in heads):
            pattern = rf"(?ms){_PARAGRAPH}[ \t]*(?:{'|'.join(words)})\b[ \t]+\S{_NO_SENTENCE}(?:(?!```|\n\s*\n).)*"
            yield function["name"], words, {"bare": pattern, "bare_tool": function["name"]}
