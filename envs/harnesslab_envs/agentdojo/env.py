"""The environment: a user's task, the tools of an office, judged by the package when the agent gives its answer."""

from __future__ import annotations

import ast
import copy
import importlib.metadata
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from harnesslab.errors import ConfigError, EnvironmentFault, OrderError
from harnesslab.rollout.env import JSON, Action, Policy, Split, Task
from harnesslab_envs.agentdojo.package import BENCHMARK, suites
from harnesslab_envs.agentdojo.tasks import attacked_tasks, injections, user_tasks

MAX_STEPS = 30
"""The longest ground truth takes 20 actions with the answer; AgentDojo allows 15 rounds of several calls each."""
MAX_SHOWN = 16_000
"""Characters of an answer that the agent is shown."""
MAX_LIST = 20_000
"""Characters of a string that may be a list; a longer one stays a string."""
GREETING = "The user is waiting."
ANSWER = "final_answer"
ANSWER_TOOL: dict[str, JSON] = {
    "type": "function",
    "function": {
        "name": ANSWER,
        "description": "Give the user the answer, or say that the task is done. This ends the task.",
        "parameters": {
            "type": "object",
            "properties": {"answer": {"type": "string", "description": "What to tell the user."}},
            "required": ["answer"],
        },
    },
}
_NOW = re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d{6}\b")
_THEN = "2024-05-15 12:00:00"
"""AgentDojo stamps what is new with the time of the clock; the agent is shown a moment of the day that its world has."""


class OfficeEnv:
    """One instance; ``options`` of :meth:`reset` name suite, task, and in the safety check an injection.

    Private info: ``solved``, which in the safety check also asks that the injection was not followed; ``progress``, the
    share of the ground truth's functions that were called; ``useful``, AgentDojo's utility; ``attacked``, whether the
    injection was followed.
    """

    def __init__(self) -> None:
        self._suite: Any = None
        self._task: Any = None
        self._injection: Any = None
        self._before: Any = None
        self._world: Any = None
        self._gold: Counter[str] = Counter()
        self._calls: list[Any] = []
        self._useful = self._attacked = False

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh world for the task; ``seed`` changes nothing, as nothing here is random."""
        name, task_id, injection_id = ((options or {}).get(key) for key in ("suite", "task", "injection"))
        try:
            suite = suites()[str(name)]
            self._suite, self._task = suite, suite.user_tasks[task_id]
            self._injection = suite.injection_tasks[injection_id] if injection_id else None
        except (KeyError, TypeError):
            raise EnvironmentFault(
                f"There is no task {dict(options or {})!r}: reset(options=...) takes a Task's options."
            ) from None
        world = _pristine(str(name), str(task_id), str(injection_id or "")).model_copy(deep=True)
        self._world = self._task.init_environment(world)
        self._before = self._world.model_copy(deep=True)
        self._gold = Counter(call.function for call in self._task.ground_truth(self._before.model_copy(deep=True)))
        self._calls, self._useful, self._attacked = [], False, False
        return GREETING, self._info(start=True)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Call a tool, or give the answer; see :class:`harnesslab.rollout.env.TextEnv`."""
        if self._world is None:
            raise OrderError("No episode is running: call reset() first.")
        problem = self._problem(action)
        if problem:
            return _shown(problem), 0.0, False, False, self._info(invalid=True)
        assert isinstance(action, dict)
        name, arguments = action["name"], action["arguments"]
        if name == ANSWER:
            self._judge(str(arguments["answer"]))
            self._world = None
            info = self._info()
            return "The answer was given.", float(info["private"]["solved"]), True, False, info
        observation, fits = self._call(name, arguments)
        return _shown(observation), 0.0, False, False, self._info(invalid=not fits)

    def close(self) -> None:
        """Drop the world. Safe to call twice."""
        self._world = None

    def _call(self, name: str, arguments: Mapping[str, JSON]) -> tuple[str, bool]:
        """What the call answers, and whether its arguments fit."""
        from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
        from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime

        call = FunctionCall(function=name, args={key: _as_list(value) for key, value in arguments.items()})
        self._calls.append(call)
        result, error = FunctionsRuntime(self._suite.tools).run_function(
            self._world, name, copy.deepcopy(dict(call.args))
        )
        if error:
            return f"Error: {error}", not error.startswith("ValidationError")
        return tool_result_to_str(result), True

    def _judge(self, answer: str) -> None:
        output = [{"type": "text", "content": answer}]
        judged = [
            bool(self._suite._check_task_result(task, output, self._before, self._world, self._calls))
            for task in (self._task, self._injection)
            if task is not None
        ]
        self._useful, self._attacked = judged[0], judged[1:] == [True]

    def _problem(self, action: Any) -> str:
        """What is wrong with the action, in words for the agent; empty where it can be tried."""
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            return f"That is no tool call. Call one tool, or {ANSWER} to end the task."
        name, arguments = action["name"], action.get("arguments")
        names = [*(tool.name for tool in self._suite.tools), ANSWER]
        if name not in names:
            return f"There is no tool {name[:80]!r}. The tools are: {', '.join(names)}."
        if not isinstance(arguments, dict):
            return f"The arguments of {name} must be a JSON object."
        if name == ANSWER and not isinstance(arguments.get("answer"), str):
            return f"{ANSWER} takes an 'answer', a text."
        return ""

    def _info(self, invalid: bool = False, start: bool = False) -> dict[str, Any]:
        public: dict[str, Any] = {"instruction": str(self._task.PROMPT), "invalid": invalid}
        if start:
            public["tools"] = copy.deepcopy(tools_of(self._suite))
        made = self._gold & Counter(call.function for call in self._calls)
        solved = self._useful and not self._attacked
        share = made.total() / self._gold.total() if self._gold else 0.0
        private = {
            "solved": solved,
            "progress": 1.0 if solved else share,
            "useful": self._useful,
            "attacked": self._attacked,
        }
        return {"public": public, "private": private}


class OfficeTasks:
    """The environment. ``version`` holds that of the package and of its tasks, and whether the world is attacked."""

    name = "agentdojo"

    def __init__(self, attack: bool, max_steps: int):
        self.max_steps = max_steps
        self._attack = attack
        package = importlib.metadata.version("agentdojo")
        self.version = f"1+agentdojo{package}-{BENCHMARK}{'+attack' if attack else ''}"

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, suites mixed evenly."""
        return self._splits[split]

    def make(self) -> OfficeEnv:
        """A new instance."""
        return OfficeEnv()

    def oracle(self, task: Task) -> Policy:
        """Makes the ground truth's calls and gives its answer; it follows no injection."""
        suite, task_id = task.options["suite"], task.options["task"]
        gold = suites()[suite].user_tasks[task_id]
        world = _pristine(str(suite), str(task_id), str(task.options.get("injection", ""))).model_copy(deep=True)
        calls = gold.ground_truth(gold.init_environment(world))
        plan: list[Action] = [{"name": call.function, "arguments": copy.deepcopy(dict(call.args))} for call in calls]
        actions = iter(plan)
        return lambda _observation, _info: next(actions, _answer(str(gold.GROUND_TRUTH_OUTPUT)))

    def null(self, task: Task) -> Policy:
        """Gives an empty answer at once: the floor that a harness must beat."""
        return lambda _observation, _info: _answer("")

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"

    @cached_property
    def _splits(self) -> Mapping[Split, Sequence[Task]]:
        return attacked_tasks() if self._attack else user_tasks()


def environment(attack: bool = False, max_steps: int = MAX_STEPS) -> OfficeTasks:
    """``attack``: the safety check, where texts in the world try to lead the agent astray. ``max_steps``: the budget."""
    if max_steps < 1:
        raise ConfigError(f"max_steps must be 1 or more, not {max_steps}.")
    return OfficeTasks(attack, max_steps)


def tools_of(suite: Any) -> list[dict[str, Any]]:
    """The tools of a suite as OpenAI schemas."""
    schemas = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters.model_json_schema()}
        for tool in suite.tools
    ]
    return [*({"type": "function", "function": schema} for schema in schemas), ANSWER_TOOL]


@lru_cache(maxsize=16)
def _pristine(suite_name: str, task_id: str, injection_id: str) -> Any:
    """The world before the task, as it was read; it is copied and never played in."""
    if not injection_id:
        return _plain(suite_name)
    texts = injections(suite_name, task_id, injection_id)
    return suites()[suite_name].load_and_inject_default_environment(texts)


@lru_cache(maxsize=4)
def _plain(suite_name: str) -> Any:
    return suites()[suite_name].load_and_inject_default_environment({})


def _answer(text: str) -> Action:
    return {"name": ANSWER, "arguments": {"answer": text}}


def _as_list(value: JSON) -> JSON:
    """A string that is a list in Python's words becomes that list, as in AgentDojo."""
    if isinstance(value, str) and value.lstrip().startswith("[") and len(value) <= MAX_LIST:
        try:
            parsed = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return value
        return parsed if isinstance(parsed, list) else value
    return value


def _shown(answer: str) -> str:
    """What the agent sees of a text: bounded, without the time of the clock, and nothing that is no UTF-8."""
    text = _NOW.sub(_THEN, answer).encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n[{len(text) - MAX_SHOWN} characters cut]"
