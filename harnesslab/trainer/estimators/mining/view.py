"""What the miners look at: the trajectories of a run and the present harness, with the questions that many ask."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from harnesslab.harness.base import Intervention
from harnesslab.harness.load import Harness
from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import ended_itself, is_error
from harnesslab.trainer.failures import Failures

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class View:
    """One run and one harness. Everything is in the order of the panel, so that mining is deterministic."""

    def __init__(self, failures: Failures, harness: Harness):
        self.failures = failures
        self.harness = harness
        self.failed: list[Episode] = failures.episodes
        self.solved: list[Episode] = failures.solved
        self.episodes: list[Episode] = failures.run.scorable

    def of_kind(self, kind: str) -> list[Intervention]:
        """The harness's interventions of one kind."""
        return [item for item in self.harness.interventions if item.kind == kind]

    def fired(self, name: str) -> int:
        """In how many episodes of the run the intervention fired."""
        return sum(episode.fired.get(name, 0) > 0 for episode in self.episodes)

    def failed_steps(self) -> Iterator[tuple[Episode, Step]]:
        """Each step of each failed episode."""
        for episode in self.failed:
            for step in episode.steps:
                yield episode, step

    @cached_property
    def lists_actions(self) -> bool:
        """Whether the environment lists what is admissible."""
        return any(step.admissible for episode in self.episodes for step in episode.steps)

    @cached_property
    def tools(self) -> tuple[dict[str, Any], ...] | None:
        """Schemas of the tools, as far as calls that the environment took show them; None without tools."""
        names = sorted({name for episode in self.episodes for name in episode.tools})
        if not names:
            return None
        calls: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for episode in self.episodes:
            for step in episode.steps:
                if isinstance(step.action, dict) and step.executed and not step.invalid:
                    arguments = step.action.get("arguments")
                    if isinstance(arguments, dict):
                        calls.setdefault(step.tool, []).append(arguments)
        return tuple(_schema(name, calls[name]) for name in sorted(calls))

    @cached_property
    def finishers(self) -> tuple[str, ...]:
        """Tools whose call ended an episode before its budget was spent, each time it was made."""
        last: Counter[str] = Counter()
        total: Counter[str] = Counter()
        for episode in self.episodes:
            for step in episode.steps:
                name = step.tool
                if name and step.executed and not is_error(step):
                    total[name] += 1
                    last[name] += step is episode.steps[-1] and ended_itself(episode)
        return tuple(name for name in sorted(total) if last[name] == total[name])

    def many(self, share: float = 0.0) -> int:
        """How many failed episodes a pattern must show in to be one: two, and at least ``share`` of all."""
        return max(min(2, len(self.failed)), math.ceil(share * len(self.failed)))


def _schema(name: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    properties: dict[str, dict[str, str]] = {}
    for arguments in calls:
        for key, value in arguments.items():
            properties.setdefault(str(key), {"type": _TYPES.get(type(value), "string")})
    required = sorted(key for key in properties if all(key in arguments for arguments in calls))
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}
