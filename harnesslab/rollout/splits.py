"""Finds tasks that occur in two splits, or twice in one: whatever is learned on one copy helps on the other.

The text of a task is what ``environment.instruction(task)`` returns; else the texts in its options; else, only when
playing is allowed, the instruction and the first observation of a reset. If most tasks share their text with another
one of their split, as in a generator that varies the seed, texts do not identify tasks and are not compared alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from harnesslab.errors import EnvironmentFault, EnvironmentUnavailable, RepeatedTask, SplitWarning, readers_line
from harnesslab.plainjson import texts
from harnesslab.plaintext import clip, counted
from harnesslab.rollout.bounds import first_look
from harnesslab.rollout.env import SPLITS, Environment, Split, Task, public, tasks_of
from harnesslab.rollout.twins import Kind, Twin, find_twins, is_text

SECONDS = 60.0
"""How long tasks are reset to read their texts."""
COLUMNS = ["kind", "split", "task", "in", "like", "text", "like text"]


@dataclass(frozen=True, slots=True)
class Splits:
    """What was found. ``missing`` gives the reason for each split without tasks; ``compared`` says what was looked at."""

    name: str
    sizes: Mapping[Split, int]
    missing: Mapping[Split, str]
    twins: tuple[Twin, ...]
    compared: str

    def rows(self) -> list[dict[str, Any]]:
        """One row a twin, the most held-out split first."""
        order = {split: place for place, split in enumerate(reversed(SPLITS))}
        kinds = {kind: place for place, kind in enumerate(get_args(Kind))}
        return [
            {
                "kind": twin.kind, "split": twin.split, "task": twin.task.id, "in": twin.like_split,
                "like": twin.like.id, "text": clip(twin.text, 100), "like text": clip(twin.like_text, 100),
            }
            for twin in sorted(self.twins, key=lambda twin: (order[twin.split], kinds[twin.kind]))
        ]  # fmt: skip

    def sentences(self) -> list[str]:
        """What a user should know before anything is measured; empty if there is nothing."""
        if not any(self.sizes.values()):
            why = next(filter(None, self.missing.values()), "all splits are empty")
            return [f"it has no tasks ({_reason(why)})"]
        said = [f"it has no {split} tasks{f' ({_reason(why)})' if why else ''}" for split, why in self.missing.items()]
        for split in reversed(SPLITS):
            for other in SPLITS:
                said += self._overlap(split, other)
        return said

    def warning(self) -> str:
        """The sentences as one text, with what to do; empty if there is nothing to say."""
        said = self.sentences()
        if not said:
            return ""
        rest = " lab.check_splits() lists them." if self.twins else ""
        return f"Check the splits of '{self.name}': {'; '.join(said)}.{rest}"

    def _overlap(self, split: Split, other: Split) -> Iterator[str]:
        pairs = [twin for twin in self.twins if (twin.split, twin.like_split) == (split, other)]
        same = [twin for twin in pairs if twin.kind == "same"]
        near = [twin for twin in pairs if twin.kind == "near"]
        total = self.sizes.get(split, 0)
        if split == other:
            if same:
                yield f"{_of(len(same), total, split)} {_verb(same, 'repeats', 'repeat')} another one ({_pair(same[0])})"
            return
        if len(same) == total > 0:
            whole = f"the only {split} task is" if total == 1 else f"all {total} {split} tasks are"
            yield f"{whole} also in {other}: results on {split} do not show how well unseen tasks are solved"
        elif same:
            yield f"{_of(len(same), total, split)} {_verb(same, 'is', 'are')} also in {other} ({_pair(same[0])})"
        if near:
            yield f"{_of(len(near), total, split)} nearly {_verb(near, 'repeats', 'repeat')} one of {other} ({_pair(near[0])})"


def check_splits(environment: Environment, *, seconds: float = 0.0) -> Splits:
    """Load the tasks of all splits and compare them.

    ``seconds``: how long tasks may be reset to read their texts, if the environment does not give them otherwise; 0
    resets none. Raises RepeatedTask if an id is used twice.
    """
    tasks: dict[Split, list[Task]] = {}
    missing: dict[Split, str] = {}
    for split in SPLITS:
        try:
            tasks[split] = tasks_of(environment, split)
        except RepeatedTask:
            raise
        except (EnvironmentUnavailable, EnvironmentFault) as error:
            missing[split] = str(error)
        else:
            if not tasks[split]:
                missing[split] = ""
    _refuse_shared_ids(environment, tasks)
    everything = [(split, task) for split, found in tasks.items() for task in found]
    read = _texts(environment, [task for _, task in everything], seconds)
    twins = tuple(find_twins(everything, read.texts, played=read.played))
    sizes = {split: len(tasks.get(split, ())) for split in SPLITS}
    return Splits(environment.name, sizes, missing, twins, read.compared)


def warn_of_splits(environment: Environment) -> None:
    """Warn, once for all that is found, of splits that overlap or are empty; no task is played.

    Raises RepeatedTask if an id is used twice.
    """
    if text := check_splits(environment).warning():
        warnings.warn(text, SplitWarning, stacklevel=readers_line())


@dataclass(frozen=True, slots=True)
class _Texts:
    """The text of each task, empty where it is unknown; in words what is compared; whether the tasks were reset for it."""

    texts: list[str]
    compared: str
    played: bool = False


def _texts(environment: Environment, tasks: Sequence[Task], seconds: float) -> _Texts:
    instruction = getattr(environment, "instruction", None)
    told = [_instruction(environment, task) for task in tasks] if callable(instruction) else []
    if any(told):
        return _Texts(told, "instructions, seeds and options")
    given = [" ".join(text for text in texts(task.options) if text != task.id and is_text(text)) for task in tasks]
    if any(given):
        return _Texts(given, "texts in the options, seeds and options")
    seen, end = [], time.monotonic() + seconds
    for task in tasks:
        if time.monotonic() >= end:
            break
        seen.append(_look(environment, task))
    if not any(seen):
        return _Texts(given, "seeds and options")
    part = "" if len(seen) == len(tasks) else f" of the first {len(seen)} of {len(tasks)} tasks"
    return _Texts(
        [*seen, *given[len(seen) :]], f"instructions and first observations{part}, seeds and options", played=True
    )


def _instruction(environment: Any, task: Task) -> str:
    try:
        text = environment.instruction(task)
    except Exception as error:
        raise EnvironmentUnavailable(
            f"instruction() of '{environment.name}' raised {type(error).__name__} on task {task.id!r}: {error}"
        ) from error
    return text if isinstance(text, str) else ""


def _look(environment: Environment, task: Task) -> str:
    """Instruction and first observation, a text of their own each; empty where the task cannot be reset."""
    try:
        observation, info = first_look(environment, task)
    except EnvironmentFault:
        return ""
    return f"{public(info).get('instruction', '')}\n{observation}"


def _refuse_shared_ids(environment: Environment, tasks: Mapping[Split, Sequence[Task]]) -> None:
    owner: dict[str, Split] = {}
    for split, found in tasks.items():
        for task in found:
            if task.id in owner:
                raise RepeatedTask(
                    f"'{environment.name}' uses the task id {task.id!r} in {owner[task.id]} and again in {split}: "
                    "give each task an id of its own"
                )
            owner[task.id] = split


def _reason(why: str) -> str:
    return clip(why, 300).rstrip(".")


def _of(count: int, total: int, split: Split) -> str:
    return f"{count} of {counted(total, f'{split} task')}"


def _verb(twins: Sequence[Twin], one: str, several: str) -> str:
    return one if len(twins) == 1 else several


def _pair(twin: Twin) -> str:
    return f"{clip(twin.task.id, 60)} like {clip(twin.like.id, 60)}"
