"""Some tasks of a sort were solved, others of it were not: show how."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from harnesslab.plaintext import clip
from harnesslab.rollout.taxonomy import REASONING, TRAJECTORY
from harnesslab.trainer.estimators.mining.conditions import Conditions
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Variant
from harnesslab.trainer.estimators.mining.plans import Plan, grouped, tasks
from harnesslab.trainer.estimators.mining.view import View

MOST = 6
"""Procedures that are offered in one call."""
WITNESSES = 3
"""Solved episodes that are tried as the worked example, one after the other."""


def mine(view: View) -> Iterator[Idea]:
    """A procedure for each way in which tasks were solved, with the failed tasks of the same sort as evidence.

    First as a worked example from the cleanest witness, then as a list of steps. The leak scan has its say on both.
    A way that one task alone was solved by is a weaker idea; it is left out beside a well-supported one that no word
    of the instructions tells it from.
    """
    groups = [group for group in grouped(view.solved) if len(group[0].steps) > 1]
    texts = [[plan.episode.instruction for plan in group] for group in groups]
    things = [set().union(*(plan.things for plan in group)) for group in groups]
    conditions = Conditions(texts, [episode.instruction for episode in view.episodes], things)
    chosen: list[int] = []
    for number in range(len(groups)):
        if len(chosen) < MOST and all(conditions.separable(number, other) for other in chosen):
            chosen.append(number)
    stems: set[str] = set()
    for number in chosen:
        pattern = conditions.pattern(number, [other for other in chosen if other != number])
        clues = _clues(view, groups[number][0], pattern)
        stem = _stem(pattern, groups[number][0])
        if clues and stem not in stems:
            stems.add(stem)
            yield _idea(groups[number], pattern, stem, clues)


def _idea(group: Sequence[Plan], pattern: str | None, stem: str, clues: tuple[Clue, ...]) -> Idea:
    support = tasks(group)
    return Idea(
        kind="procedure",
        layer="skill",
        stem=stem,
        about=f"Show how {'another task was' if support == 1 else f'{support} tasks were'} solved, as an example",
        variants=tuple(_variants(group, pattern)),
        labels=(TRAJECTORY, REASONING),
        strength=0.55 if support > 1 else 0.45,
        clues=clues,
        single=False,
    )


def _variants(group: Sequence[Plan], pattern: str | None) -> Iterator[Variant]:
    where: dict[str, Any] = {"retrieve": "match", "match": pattern} if pattern else {"retrieve": "always"}
    for plan in group[:WITNESSES]:
        shots = [
            {"observation": plan.saw(place), "action": step.action}
            if plan.saw(place)
            else {"action": step.action}
            for place, step in enumerate(plan.steps)
        ]  # fmt: skip
        yield Variant({**where, "task": f"Task: {plan.episode.instruction}", "demonstration": shots})
    lines = ["Such a task is solved like this:"]
    lines += [f"{number}. {line}" for number, line in enumerate(group[0].lines, 1)]
    yield Variant({**where, "text": "\n".join(lines)})


def _clues(view: View, plan: Plan, pattern: str | None) -> tuple[Clue, ...]:
    """Each failed task of the sort, at the step that was its bottleneck."""
    return tuple(
        Clue(f.episode, f.diagnosis.step, f"a task of this sort was solved by: {clip('; '.join(plan.lines), 120)}")
        for f in view.failures
        if pattern is None or re.search(pattern, f.episode.instruction)
    )


def _stem(pattern: str | None, plan: Plan) -> str:
    """A file name from the words of the condition, else from the verbs of the plan."""
    positive = pattern is not None and "(?!" not in pattern
    words = re.findall(r"\w{2,}", pattern.replace("(?i)", "").replace(r"\b", " ")) if pattern and positive else []
    words = words or list(dict.fromkeys(str(step.action).split()[0] for step in plan.steps))
    stem = re.sub(r"[^a-z0-9]+", "_", "_".join(words).casefold()).strip("_")
    return f"how_{stem[:40].strip('_') or 'to'}"
