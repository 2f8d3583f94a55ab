"""Agents without a mind that play outside any harness: one answer, the first option, an option at random."""

from __future__ import annotations

import random
import re

from harnesslab.rollout.control import seen_calls
from harnesslab.rollout.env import Action, Policy, public


def constant(action: Action) -> Policy:
    """Always does the same."""
    return lambda _observation, _info: action


def first_option(_observation: str, info: dict) -> Action:
    """Takes the first admissible action; an empty line where none is listed."""
    options = public(info).get("admissible") or [""]
    first: Action = options[0]
    return first


def random_option(seed: str) -> Policy:
    """Draws an admissible action; else a call of a tool with a word it has just seen, else some of these words."""
    dice = random.Random(seed)

    def draw(observation: str, info: dict) -> Action:
        seen = public(info)
        text = f"{seen.get('instruction', '')} {observation}"
        options = seen.get("admissible") or seen_calls(seen.get("tools") or (), text)
        if options:
            chosen: Action = dice.choice(options)
            return chosen
        words = re.findall(r"\w+", text)
        return " ".join(dice.choice(words) for _ in range(dice.randint(1, 6))) if words else ""

    return draw
