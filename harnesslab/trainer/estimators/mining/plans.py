"""How tasks were solved: the plans of solved episodes, cleaned and grouped by what they have in common.

A plan is cleaned by a backward slice from the last action. A step is needed by another one if its result first told
something that the other names, or if it made the other possible (where the possible actions are on record). Last come
steps with a verb that is still missing, if they name nothing but what needed ones name. What an action names and was
told before is a hole; plans that are equal with holes are one way to solve a sort of task. Steps that the slice
left out are put back where all plans of a group made them.
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
    needed = _slice(episode, done)
    verbs = {_verb(step) for step in needed}
    named = {phrase for step in needed for phrase in phrases(str(step.action))}
    # Of equal actions the last one: what came of the others was undone or led nowhere.
    last = {str(step.action): step for step in done}
    for step in last.values():
        own = phrases(str(step.action))
        if own and named.issuperset(own) and (step.admissible is None or _verb(step) not in verbs):
            needed.append(step)
    steps = _without_returns([step for step in done if step in needed])
    kept = {step.action for step in steps}
    rest = [step for step in last.values() if step.action not in kept]
    return Plan(episode, tuple(steps), tuple(sorted(rest, key=lambda step: step.index)))


def grouped(solved: Sequence[Episode]) -> list[list[Plan]]:
    """Plans that are equal with holes, the group with most tasks first; in a group the cleanest plan first."""
    plans = [plan for episode in solved if (plan := plan_of(episode)) is not None]
    rough: dict[tuple[str, ...], list[Plan]] = {}
    for plan in plans:
        rough.setdefault(plan.skeleton, []).append(plan)
    groups: dict[tuple[str, ...], list[Plan]] = {}
    for members in rough.values():
        for plan in _with_shared_steps(members) if tasks(members) > 1 else members:
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


def _verb(step: Step) -> str:
    return str(step.action).split()[0]


def _without_returns(steps: Sequence[Step]) -> list[Step]:
    """The steps without those that only undo a detour: the same again, with no other of its verb kept in between."""
    kept: list[Step] = []
    for step in steps:
        before = next((other for other in reversed(kept) if _verb(other) == _verb(step)), None)
        if before is None or before.action != step.action:
            kept.append(step)
    return kept


def _slice(episode: Episode, done: Sequence[Step]) -> list[Step]:
    """The steps of ``done`` that the last one needs, directly or by way of others."""
    needed = [done[-1]]
    for step in needed:
        sources = [_teller(episode, phrase, step) for phrase in phrases(str(step.action))]
        for source in (*sources, _enabler(episode, step)):
            if source is not None and source in done and source not in needed:
                needed.append(source)
    return needed


def _enabler(episode: Episode, step: Step) -> Step | None:
    """The step that made this one possible; None where it was so from the start or nothing is on record."""
    if step.action in (episode.steps[0].admissible or ()):
        return None
    for before in reversed(episode.steps[: step.index]):
        if before.admissible is None:
            return None
        if step.action not in before.admissible:
            return before
    return None


def _teller(episode: Episode, phrase: str, step: Step) -> Step | None:
    """The step before ``step`` whose result told the phrase first; None where it was told at the start or never.

    If the same was done and told again, the last time counts.
    """
    if _has(f"{episode.instruction}\n{episode.steps[0].observation}", phrase):
        return None
    tellers = [before for before in episode.steps[: step.index] if _has(bare_result(before), phrase)]
    return next((again for again in reversed(tellers) if again.action == tellers[0].action), None)


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
