"""What solved episodes have in common: their plans, with the words of the single task turned into slots.

A plan is cleaned of what did not count (refused steps, repeats, actions about things that the task does not name and
other plans do without), then abstracted: a word of an action that its instruction names, and that most
other instructions do not, becomes a slot. Plans of several tasks that are equal after that are one procedure. The
sentences of the instructions, with the same words as slots, say when it holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harnesslab.rollout.records import Episode
from harnesslab.rollout.taxonomy import bare_result, is_error

COMMON = 0.6
"""A word in more than this share of the instructions belongs to the language, not to a task."""
SLOTS = "XYZUVWPQR"
_GLUE = "a an the this that it its and or not is are be to of in on at by for from with into onto under over as"
GLUE = frozenset(_GLUE.split())
"""English words that name nothing; they are no slots even where few instructions have them."""

_SLOT = re.compile(rf"(?<!\w)[{SLOTS}](?!\w)")
_TOKEN = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Plan:
    """A procedure that several tasks share.

    ``steps`` are abstract actions, ``sees`` what each of them brought where all witnesses saw the same (else empty).
    ``says`` are the sentences that all instructions behind it have, abstracted in the same way; ``words`` those of
    their plain words that no instruction solved in another way has. ``fillings`` are what the slots stood for, one
    mapping (slot to phrase) a witness; ``episodes`` are the witnesses.
    """

    steps: tuple[str, ...]
    sees: tuple[str, ...]
    says: tuple[str, ...]
    words: tuple[str, ...]
    fillings: tuple[Mapping[str, str], ...]
    episodes: tuple[Episode, ...]

    def recombined(self) -> Mapping[str, str] | None:
        """A filling that no witness has: each slot from another witness, no phrase twice; None if there is none."""
        used = {slot for text in (*self.steps, *self.says) for slot in _SLOT.findall(text)}
        slots = [slot for slot in SLOTS if slot in used]
        for shift in range(len(self.fillings)):
            mixed: dict[str, str] = {}
            for place, slot in enumerate(slots):
                for offset in range(len(self.fillings)):
                    value = self.fillings[(shift + place + offset) % len(self.fillings)].get(slot)
                    if value and value not in mixed.values():
                        mixed[slot] = value
                        break
            if len(mixed) == len(slots) > 1 and not any(mixed.items() <= own.items() for own in self.fillings):
                return mixed
        return None


def fill(text: str, filling: Mapping[str, str]) -> str:
    """An abstract text with the slots filled."""
    return _SLOT.sub(lambda match: filling.get(match.group(), match.group()), text)


def shared_plans(solved: Sequence[Episode], everyone: Sequence[Episode]) -> list[Plan]:
    """Plans of text actions that at least two tasks were solved by, those with most tasks first.

    ``everyone`` are all episodes of the run: their instructions tell the language from the tasks.
    """
    common = _common_words(everyone)
    drafts = [draft for episode in solved if (draft := _Draft.of(episode, common)) is not None]
    grounded: dict[tuple[str, ...], list[_Draft]] = {}
    for draft in drafts:
        grounded.setdefault(draft.grounded, []).append(draft)
    groups: dict[tuple[str, ...], list[_Draft]] = {}
    for members in grounded.values():
        shared = set.intersection(*(set(member.steps) for member in members))
        for member in members:
            groups.setdefault(member.only(shared), []).append(member)
    chosen = [(steps, members) for steps, members in groups.items() if steps and _tasks(members) > 1]
    chosen.sort(key=lambda item: (-_tasks(item[1]), item[0]))
    return [_plan(steps, members, everyone) for steps, members in chosen]


@dataclass(frozen=True, slots=True)
class _Draft:
    episode: Episode
    steps: tuple[str, ...]
    sees: tuple[str, ...]
    grounded: tuple[str, ...]
    says: tuple[str, ...]
    filling: Mapping[str, str]

    @classmethod
    def of(cls, episode: Episode, common: frozenset[str]) -> _Draft | None:
        """The abstract plan of one solved episode; None where an action is no text."""
        done = [step for step in episode.steps if step.executed and not is_error(step)]
        if not done or not all(isinstance(step.action, str) for step in done):
            return None
        # Of a repeated action the last time counts: what came of the others was undone or led nowhere.
        last = {str(step.action): step for step in done}
        kept = [str(step.action) for step in done if last[str(step.action)] is step]
        task = {word for word in _words(episode.instruction) if word not in common}
        slots = _slots(kept, task)
        steps = tuple(_abstract(action, slots, verb=True) for action in kept)
        grounded = tuple(step for step in steps if _has_slot(step))
        says = tuple(_abstract(s, slots) for s in _SENTENCE.split(episode.instruction.strip()) if s.strip())
        sees = tuple(_abstract(bare_result(last[action]).strip(), slots) for action in kept)
        return cls(episode, steps, sees, grounded, says, {slot: phrase for phrase, slot in slots.items()})

    def only(self, shared: set[str]) -> tuple[str, ...]:
        """The steps that the whole group has."""
        return tuple(step for step in self.steps if step in shared)

    def saw(self, step: str) -> str:
        """What came of an abstract step."""
        return self.sees[self.steps.index(step)]


def _plan(steps: tuple[str, ...], members: Sequence[_Draft], everyone: Sequence[Episode]) -> Plan:
    says = tuple(s for s in members[0].says if _has_slot(s) and all(s in member.says for member in members))
    inside = {member.episode.instruction for member in members}
    outside = [set(_words(e.instruction)) for e in everyone if e.solved and e.instruction not in inside]
    shared = set.intersection(*(set(_words(text)) for text in sorted(inside)))
    words = sorted(word for word in shared if not any(word in other for other in outside))
    seen = [{member.saw(step) for member in members} for step in steps]
    return Plan(
        steps=steps,
        sees=tuple(min(texts) if len(texts) == 1 else "" for texts in seen),
        says=says,
        words=tuple(words),
        fillings=tuple(member.filling for member in members),
        episodes=tuple(member.episode for member in members),
    )


def _slots(actions: Sequence[str], task: set[str]) -> Mapping[str, str]:
    """A letter for each run of task words in the actions, in the order in which they come up."""
    names: dict[str, str] = {}
    for action in actions:
        for phrase in _phrases(action, task):
            if phrase not in names and len(names) < len(SLOTS):
                names[phrase] = SLOTS[len(names)]
    return names


def _phrases(action: str, task: set[str]) -> list[str]:
    """Runs of task words after the first word, which is the verb."""
    runs: list[list[str]] = [[]]
    for word in action.split()[1:]:
        if word.casefold().strip(".,;:!?") in task:
            runs[-1].append(word)
        else:
            runs.append([])
    return [" ".join(run) for run in runs if run]


def _abstract(text: str, slots: Mapping[str, str], *, verb: bool = False) -> str:
    """``text`` with the phrases of the slots replaced, long ones first; the verb of an action stays."""
    first, _, rest = text.partition(" ") if verb else ("", "", text)
    for phrase in sorted(slots, key=lambda p: (-len(p), p)):
        rest = re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", slots[phrase], rest, flags=re.IGNORECASE)
    return f"{first} {rest}".strip() if verb else rest.strip()


def _has_slot(text: str) -> bool:
    return _SLOT.search(text) is not None


def _common_words(episodes: Sequence[Episode]) -> frozenset[str]:
    instructions = sorted({episode.instruction for episode in episodes})
    counts = Counter(word for text in instructions for word in set(_words(text)))
    return GLUE | {word for word, count in counts.items() if count > COMMON * len(instructions)}


def _words(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text.casefold()) if token[0].isalnum()]


def _tasks(members: Sequence[_Draft]) -> int:
    return len({member.episode.task_id for member in members})
