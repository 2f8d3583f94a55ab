"""Where an episode did the same thing in the same place."""

from __future__ import annotations

from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import action_text


def repeats(episode: Episode) -> list[Step]:
    """Steps whose observation and action, as the agent saw them, occurred in an earlier step."""
    seen: set[tuple[str, str]] = set()
    found = []
    for step in episode.steps:
        pair = (step.observation, action_text(step.action))
        if step.action is not None and pair in seen:
            found.append(step)
        seen.add(pair)
    return found
