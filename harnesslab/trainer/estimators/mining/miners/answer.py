"""Finishing answers that are not in the last result, or never come: say how to finish."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from harnesslab.plaintext import clip
from harnesslab.rollout.records import Episode
from harnesslab.rollout.taxonomy import REASONING, TRAJECTORY, ended_itself, is_error
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.view import View


def mine(view: View) -> Iterator[Idea]:
    """Two ideas: copy the answer from the result; finish as soon as a result is there."""
    for finisher in view.finishers:
        strange = tuple(clue for episode in view.failed for clue in _not_in_result(episode, finisher))
        if strange and _solved_copy(view, finisher):
            text = "Copy the values exactly as they are in the last result, all of them and nothing else."
            yield Idea(
                kind="prompt",
                layer="contract",
                stem=f"copy_{finisher}",
                about=f"Copy the answer for {finisher} from the last result",
                variants=(
                    Variant({"text": f"For {finisher}: {text[0].lower()}{text[1:]}", "on": "observation"}),
                    Variant({"text": text, "on": f"tool:{finisher}"}),
                ),
                labels=(TRAJECTORY, REASONING),
                strength=0.25,
                clues=strange,
                single=False,
            )
        late = tuple(clue for episode in view.failed for clue in _never_finished(episode, finisher))
        if late:
            text = f"If the last result answers the task, call {finisher} now; do not repeat what worked."
            yield Idea(
                kind="prompt",
                layer="contract",
                stem=f"then_{finisher}",
                about=f"Call {finisher} as soon as a result is available",
                variants=(Variant({"text": text, "on": "observation"}), Variant({"text": text})),
                labels=(TRAJECTORY, REASONING),
                strength=0.3,
                clues=late,
                single=False,
            )


def _not_in_result(episode: Episode, finisher: str) -> list[Clue]:
    """The finish, where one of its values does not occur in the observation before it."""
    if not episode.steps or episode.steps[-1].tool != finisher:
        return []
    last = episode.steps[-1]
    strange = [value for value in _values(last.action) if value.casefold() not in last.observation.casefold()]
    if not strange or len(episode.steps) < 2 or is_error(episode.steps[-2]):
        return []
    return [Clue(episode, last.index, f"{clip(strange[0], 40)} is not in the result {clip(last.observation, 60)}")]


def _solved_copy(view: View, finisher: str) -> bool:
    """Whether solved episodes do copy: at least as many do as do not."""
    finished = [e for e in view.solved if e.steps and e.steps[-1].tool == finisher and len(e.steps) > 1]
    return sum(not _not_in_result(e, finisher) for e in finished) * 2 >= len(finished)


def _never_finished(episode: Episode, finisher: str) -> list[Clue]:
    """The last step of an episode that had results, used up its steps and never finished."""
    if not episode.steps or ended_itself(episode) or any(step.tool == finisher for step in episode.steps):
        return []
    if not any(step.executed and not is_error(step) for step in episode.steps):
        return []
    return [Clue(episode, episode.steps[-1].index, f"had results, but {finisher} was never called")]


def _values(action: object) -> list[str]:
    """The single values in the arguments of a tool call, as text."""
    arguments = action.get("arguments") if isinstance(action, dict) else None
    found: list[str] = []
    stack = [arguments]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, str):
            found += [value] if re.search(r"\w", value) else []
        elif isinstance(value, int | float):
            found.append(json.dumps(value))
    return found
