"""The leak scan: refuses an intervention that carries literals of single tasks.

A harness must help with tasks that nobody has seen. Text that occurs in exactly one task of the run, a name,
a number, a quotation or a turn of phrase, can only help with that task, so an intervention must not hold it.
What the baseline's files already say is not a leak. Numbers that are parameters (a threshold, a count) are not
text and are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import yaml

from harnesslab.errors import LeakFound
from harnesslab.plainjson import texts
from harnesslab.plaintext import clip
from harnesslab.rollout.records import Episode

PHRASE = 12
"""Words in a row that make a phrase of one task a leak, whatever the words are."""
SHORT = 3
"""Words in a row that make a phrase of one task a leak when one of the words is that task's own, too.

A short phrase of words that several tasks share ("bring the guest a cup", where others ask for a clean cup) tells nothing of one task:
worked examples are made of such phrases.
"""
HEAD = 4000
"""Characters of a text that are looked at."""

_WORD = re.compile(r"\w+(?:[-'’]\w+)*")
_QUOTED = re.compile(r"\"([^\"\n]{2,60})\"|'([^'\n]{2,60})'|`([^`\n]{2,60})`")
_PROSE = {"about"}


@dataclass(frozen=True, slots=True)
class Leak:
    """A literal of one task in one file of a candidate."""

    path: str
    literal: str
    task: str

    def __str__(self) -> str:
        return f"{self.path} holds {clip(self.literal, 60)!r}, which only task {clip(self.task, 40)} knows"


class LeakScan:
    """Knows the texts of each task of a run; made once, asked for many candidates.

    ``episodes`` are what the proposers saw: their instructions and observations are the tasks' text.
    """

    def __init__(self, episodes: Iterable[Episode]):
        self._texts: dict[str, set[str]] = {}
        own: dict[str, str] = {}
        for episode in episodes:
            self._texts.setdefault(episode.task_id, set()).update(_seen(episode))
            own[episode.task_id] = _line(episode.instruction)
        self._own = own
        self._lines = {task: "|".join(map(_line, sorted(texts))) for task, texts in self._texts.items()}
        self._found: dict[str, tuple[str, ...]] = {}

    def find(self, changes: Mapping[str, str | None], baseline: Mapping[str, bytes] | None = None) -> list[Leak]:
        """The leaks in changed files, in a fixed order, each literal once a file."""
        known = " ".join(data.decode("utf-8", "replace") for _, data in sorted((baseline or {}).items()))
        said = set(_words(known))
        leaks: list[Leak] = []
        for path in sorted(changes):
            found: dict[str, str] = {}
            for text in _texts(path, changes[path] or ""):
                found |= {lit: task for lit, task in self._in(text) if not said.issuperset(_words(lit))}
            leaks += [Leak(path, literal, found[literal]) for literal in sorted(found)]
        return leaks

    def check(self, changes: Mapping[str, str | None], baseline: Mapping[str, bytes] | None = None) -> None:
        """Raise LeakFound, naming file, literal and task, if the changed files hold literals of single tasks."""
        leaks = self.find(changes, baseline)
        if leaks:
            more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
            raise LeakFound(f"{leaks[0]}{more}; say it in words that hold for every task")

    def _in(self, text: str) -> Iterator[tuple[str, str]]:
        for literal in dict.fromkeys(_literals(text, everywhere=True)):
            task = self._only(_line(literal))
            if task is not None and any(literal in _literals(own) for own in self._texts[task]):
                yield literal, task
        for phrase in _phrases(text):
            line = f" {' '.join(phrase)} "
            # Instructions are short: few phrases get past this.
            if not any(line in own for own in self._own.values()):
                continue
            task = self._only(line)
            if task is None or line not in self._own[task]:
                continue
            if len(phrase) == PHRASE or any(self._only(f" {word} ") is not None for word in phrase):
                yield " ".join(phrase), task

    def _only(self, line: str) -> str | None:
        """The one task that has these words in a row; None where none or several have them."""
        if not line.strip():
            return None
        if line not in self._found:
            self._found[line] = tuple(task for task, text in self._lines.items() if line in text)[:2]
        holders = self._found[line]
        return holders[0] if len(holders) == 1 else None


def _seen(episode: Episode) -> set[str]:
    """The texts that the agent was given, each once, the heads of long ones."""
    first = [step.observation for step in episode.steps[:1]]
    results = [step.result for step in episode.steps]
    return {text[:HEAD] for text in (episode.instruction, *first, *results)}


def _literals(text: str, *, everywhere: bool = False) -> Iterator[str]:
    """Quotations, numbers of two digits and more, identifiers and names.

    A capital at the start of a sentence makes no name, unless ``everywhere``: an intervention may start with it.
    """
    for match in _QUOTED.finditer(text):
        yield next(group for group in match.groups() if group is not None)
    start = True
    for match in re.finditer(r"\w+(?:[.-]\w+)*|[.!?:;\n]", text):
        token = match.group()
        if len(token) == 1 and not token.isalnum():
            start = True
            continue
        odd = "_" in token or any(char.isdigit() for char in token) or any(char.isupper() for char in token[1:])
        name = token[0].isupper() and (everywhere or not start)
        if len(token) > 1 and (odd or name):
            yield token
        start = False


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _line(text: str) -> str:
    """The words of a text between single spaces, so that words in a row can be searched for."""
    return f" {' '.join(_words(text))} "


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    words = _words(text)
    for size in (SHORT, PHRASE):
        for start in range(len(words) - size + 1):
            yield tuple(words[start : start + size])


def _texts(path: str, text: str) -> list[str]:
    """The texts of a file that can reach a model or an action: of YAML its strings, without ``about``."""
    if not path.endswith((".yaml", ".yml")):
        return [text]
    try:
        return list(texts(yaml.safe_load(text), without=_PROSE))
    except (yaml.YAMLError, RecursionError, ValueError):
        return [text]
