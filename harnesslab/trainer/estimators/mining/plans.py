"""How tasks were solved: the plans of solved episodes, cleaned and grouped by what they have in common.

A plan is cleaned by a backward slice: the last action is kept, then each action whose result first told something that
a kept action names, then each action that names nothing but what kept ones name. What is named and was told (in the
instruction or an observation) before is a hole; plans that are equal with holes are one way to solve a sort of task.
Steps without such names (going where one always goes) are kept where all plans of the group have them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import bare_result, is_error

_GLUE = "a an the this that it its and or not is are be to of in on at by for from with into onto under over as"
GLUE = frozenset(_GLUE.split())
"""English words that name nothing."""
HOLE = "_"
LETTERS = "XYZUVWPQR"


@dataclass(frozen=True)
class Plan:
    """The cleaned plan of one solved episode: recorded ``steps`` in their order, and the ``rest`` that was left out.

    Refused steps and all but the last of equal actions are in neither.
    """

    episode: Episode
    steps: tuple[Step, ...]
    rest: tuple[Step, ...] = ()

    @property
    def dropped(self) -> int:
        """How many steps of the episode the plan does without."""
        return len(self.episode.steps) - len(self.steps)

    @property
    def things(self) -> set[str]:
        """The words of what the plan's actions name and the agent was told: they belong to the task, not to its sort."""
        told = [phrase for step in self.steps for phrase in _told_phrases(self.episode, step)]
        return {word for phrase in told for word in re.findall(r"\w+", phrase.casefold())}

    @cached_property
    def skeleton(self) -> tuple[str, ...]:
        """Each action with a hole for what was told before it."""
        return tuple(_skeleton(self.episode, step) for step in self.steps)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Each action with a letter for each thing: the same letter for the same thing."""
        names: dict[str, str] = {}
        lines = []
        for step in self.steps:
            text = str(step.action)
            for phrase in _told_phrases(self.episode, step):
                if phrase not in names and len(names) < len(LETTERS):
                    names[phrase] = LETTERS[len(names)]
                text = _replaced(text, phrase, names.get(phrase, phrase))
            lines.append(text)
        return tuple(lines)

    def saw(self, place: int) -> str:
        """What stood before the step at ``place``: the result of the kept step before it."""
        return bare_result(self.steps[place - 1]).strip() if place else self.episode.steps[0].observation.strip()


def plan_of(episode: Episode) -> Plan | None:
    """The cleaned plan of a solved episode; None where there is none of text actions."""
    done = [step for step in episode.steps if step.executed and not is_error(step)]
    if not done or not all(isinstance(step.action, str) and step.action.strip() for step in done):
        return None
    # Of a repeated action the last time counts: what came of the others was undone or led nowhere.
    last = {str(step.action): step for step in done}
    kept = [step for step in done if last[str(step.action)] is step]
    needed = _slice(episode, kept)
    named = {phrase for step in needed for phrase in phrases(str(step.action))}
    steps = [step for step in kept if step in needed or (phrases(str(step.action)) and _within(step, named))]
    return Plan(episode, tuple(steps), tuple(step for step in kept if step not in steps))


def grouped(solved: Sequence[Episode]) -> list[list[Plan]]:
    """Plans that are equal with holes, the group with most tasks first; in a group the cleanest plan first."""
    plans = [plan for episode in solved if (plan := plan_of(episode)) is not None]
    rough: dict[tuple[str, ...], list[Plan]] = {}
    for plan in plans:
        rough.setdefault(plan.skeleton, []).append(plan)
    groups: dict[tuple[str, ...], list[Plan]] = {}
    for members in rough.values():
        for plan in _with_shared_steps(members):
            groups.setdefault(plan.skeleton, []).append(plan)
    ranked = sorted(groups.items(), key=lambda item: (-tasks(item[1]), item[0]))
    return [sorted(members, key=lambda plan: (plan.dropped, len(plan.steps))) for _, members in ranked]


def tasks(plans: Sequence[Plan]) -> int:
    """How many tasks are behind the plans."""
    return len({plan.episode.task_id for plan in plans})


def phrases(action: str) -> list[str]:
    """What an action names: the runs of words after its first word, the verb, cut at words that name nothing."""
    runs: list[list[str]] = [[]]
    for word in action.split()[1:]:
        plain = word.strip(".,;:!?\"'")
        if not plain or plain.casefold() in GLUE:
            runs.append([])
        else:
            runs[-1].append(plain)
    return [" ".join(run) for run in runs if run]


def _within(step: Step, named: set[str]) -> bool:
    return named.issuperset(phrases(str(step.action)))


def _slice(episode: Episode, kept: Sequence[Step]) -> list[Step]:
    """The steps of ``kept`` on which the last one depends by what they told."""
    needed = [kept[-1]]
    for step in needed:
        for phrase in phrases(str(step.action)):
            source = _teller(episode, phrase, step)
            twin = next((other for other in kept if source is not None and other.action == source.action), None)
            if twin is not None and twin not in needed:
                needed.append(twin)
    return needed


def _teller(episode: Episode, phrase: str, step: Step) -> Step | None:
    """The step before ``step`` whose result told the phrase first; None where it was told at the start or never."""
    if _has(f"{episode.instruction}\n{episode.steps[0].observation}", phrase):
        return None
    return next((s for s in episode.steps[: step.index] if _has(bare_result(s), phrase)), None)


def _told_phrases(episode: Episode, step: Step) -> list[str]:
    before = [episode.instruction, *(s.observation for s in episode.steps[: step.index + 1])]
    return [phrase for phrase in phrases(str(step.action)) if any(_has(text, phrase) for text in before)]


def _skeleton(episode: Episode, step: Step) -> str:
    text = str(step.action)
    for phrase in _told_phrases(episode, step):
        text = _replaced(text, phrase, HOLE)
    return text


def _with_shared_steps(members: Sequence[Plan]) -> list[Plan]:
    """The plans of a group with those dropped steps put back that, with holes, all of them made as often."""
    made = [[(_skeleton(plan.episode, step), step) for step in plan.rest] for plan in members]
    counts = [Counter(text for text, _ in rest) for rest in made]
    shared = counts[0].copy()
    for other in counts[1:]:
        shared &= other
    full = []
    for plan, rest in zip(members, made, strict=True):
        before_kept = {step.index - 1 for step in plan.steps}
        # Of several that fit, the one that led straight to a step of the plan.
        rest = sorted(rest, key=lambda item: (item[1].index not in before_kept, -item[1].index))
        left = shared.copy()
        extra = []
        for text, step in rest:
            if left[text] > 0:
                left[text] -= 1
                extra.append(step)
        steps = tuple(sorted((*plan.steps, *extra), key=lambda step: step.index))
        full.append(Plan(plan.episode, steps, tuple(s for s in plan.rest if s not in extra)))
    return full


def _has(text: str, phrase: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE) is not None


def _replaced(text: str, phrase: str, by: str) -> str:
    verb, _, rest = text.partition(" ")
    return f"{verb} " + re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", by, rest, flags=re.IGNORECASE)
