"""The environment: a user with several requests, tools over stateful APIs, graded turn by turn with the package's checks."""

from __future__ import annotations

import copy
import importlib.metadata
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import response_checker, state_checker

from harnesslab.errors import ConfigError, OrderError
from harnesslab.rollout.env import JSON, Action, Policy, Split, Task
from harnesslab_envs.bfcl.records import Call, Record, divide, read_records, schemas
from harnesslab_envs.bfcl.world import World
from harnesslab_envs.picking import picked

MAX_STEPS = 40
"""The longest ground truth takes 37 actions, the average one 10."""
MAX_SHOWN = 16_000
"""Characters of an answer that the agent is shown; some of ``long_context`` are longer."""
REPLY = "reply_to_user"

REPLY_TOOL: dict[str, JSON] = {
    "type": "function",
    "function": {
        "name": REPLY,
        "description": "Answer the user, or say what is missing. This ends your turn; then the user makes the next "
        "request, if there is one.",
        "parameters": {
            "type": "object",
            "properties": {"message": {"type": "string", "description": "What to tell the user."}},
            "required": ["message"],
        },
    },
}

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")


class Grader:
    """BFCL's multi-turn check, one turn at a time, on the agent's own objects.

    The same order of checks as in the package's ``multi_turn_checker``, and its own two comparisons: the state after
    each turn must be that of the ground truth, and the answers so far must hold those of the ground truth's calls.
    """

    def __init__(self, record: Record):
        self._record, self._gold = record, World(record)
        self._answers: list[str] = []
        self.right = 0
        self.error = ""

    def end_turn(self, turn: int, world: World, answers: Sequence[str]) -> None:
        """Judge a turn whose calls got these answers. ``error`` keeps the first fault, by BFCL's name for it."""
        gold = self._record.gold[turn]
        expected = [self._gold.call(call) for call in gold]
        self._answers += answers
        fault = self._fault(turn, world, expected, bool(answers)) if gold else ""
        self.error = self.error or fault
        self.right += not self.error

    def _fault(self, turn: int, world: World, expected: list[str], called: bool) -> str:
        if not called:
            return "multi_turn:empty_turn_model_response"
        for result in (
            state_checker(world.apis, self._gold.apis),
            response_checker(self._answers, expected, turn),
        ):
            if not result["valid"]:
                return str(result["error_type"])
        return ""


class FunctionEnv:
    """One instance; ``options["task"]`` of :meth:`reset` names the task.

    Private info: ``solved``; ``progress``, the share of turns that were right before the first fault; ``error``, BFCL's
    name for that fault; ``turn``.
    """

    def __init__(self) -> None:
        self._record: Record | None = None
        self._world: World | None = None
        self._grader: Grader | None = None
        self._turn = 0
        self._answers: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The user's first request; ``seed`` changes nothing, as nothing here is random."""
        record = picked(options, "task", read_records())
        self._record, self._world, self._grader = record, World(record), Grader(record)
        self._turn, self._answers = 0, []
        return _first(record), self._info(tools=True)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Call a tool, or end the turn; see :class:`harnesslab.rollout.env.TextEnv`."""
        record, world, grader = self._playing()
        call = self._read(action)
        if isinstance(call, str):
            return call, 0.0, False, False, self._info(invalid=True)
        if call.name != REPLY:
            answer = world.call(call)
            self._answers.append(answer)
            return _shown(answer), 0.0, False, False, self._info()
        grader.end_turn(self._turn, world, self._answers)
        self._turn, self._answers = self._turn + 1, []
        if self._turn < len(record.turns):
            more = self._turn in record.held_out
            return _request(record, self._turn), 0.0, False, False, self._info(tools=more)
        self._world = None
        return "The user has no more requests.", float(not grader.error), True, False, self._info()

    def close(self) -> None:
        """Drop the objects. Safe to call twice."""
        self._world = None

    def _playing(self) -> tuple[Record, World, Grader]:
        if self._record is None or self._world is None or self._grader is None:
            raise OrderError("No episode is running: call reset() first.")
        return self._record, self._world, self._grader

    def _read(self, action: Any) -> Call | str:
        """The call, or what is wrong with the action, in words for the agent."""
        record, world, _ = self._playing()
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            return f"That is no tool call. Call one tool, or {REPLY} to end your turn."
        name, arguments = action["name"], action.get("arguments")
        # As in BFCL, a function that is held out works for one who calls it all the same; a ground truth does so.
        if name not in names_of(tools_of(record, len(record.turns))):
            offered = ", ".join(names_of(tools_of(record, self._turn)))
            return f"There is no tool {_printable(name[:80])!r}. The tools are: {offered}."
        if not isinstance(arguments, dict):
            return f"The arguments of {name} must be a JSON object."
        if name == REPLY:
            return Call(REPLY, (), {})
        try:
            world.signature(name).bind(**arguments)
        except TypeError as error:
            return f"{name} does not take these arguments: {_printable(str(error)[:200])}."
        return Call(name, (), arguments)

    def _info(self, invalid: bool = False, tools: bool = False) -> dict[str, Any]:
        assert self._record is not None and self._grader is not None
        public: dict[str, Any] = {"instruction": _first(self._record), "invalid": invalid}
        if tools:
            # A copy: what a harness does to the schemas must not reach the next episode.
            public["tools"] = copy.deepcopy(tools_of(self._record, self._turn))
        total = len(self._record.turns)
        grader = self._grader
        solved = self._turn == total and not grader.error
        progress = grader.right / total
        return {
            "public": public,
            "private": {"solved": solved, "progress": progress, "error": grader.error, "turn": self._turn},
        }


class FunctionTasks:
    """The environment. ``version`` holds that of bfcl-eval, which brings the tasks, the APIs and the checks."""

    name = "bfcl"

    def __init__(self, max_steps: int):
        self.max_steps = max_steps
        self.version = f"1+bfcl-eval{importlib.metadata.version('bfcl-eval')}"

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, categories and domains in turn."""
        return divide(read_records().values())[split]

    def make(self) -> FunctionEnv:
        """A new instance."""
        return FunctionEnv()

    def oracle(self, task: Task) -> Policy:
        """Makes the calls of the ground truth, turn by turn."""
        actions = _plan(read_records()[task.id])
        return lambda _observation, _info: next(actions, _reply("Done."))

    def null(self, task: Task) -> Policy:
        """Ends each turn at once: the floor that a harness must beat."""
        return lambda _observation, _info: _reply("I cannot do that.")

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return Path(__file__).parent / "starter"


def environment(max_steps: int = MAX_STEPS) -> FunctionTasks:
    """``max_steps``: the action budget of an episode, over all turns."""
    if max_steps < 1:
        raise ConfigError(f"max_steps must be 1 or more, not {max_steps}.")
    return FunctionTasks(max_steps)


def tools_of(record: Record, turn: int) -> list[dict[str, Any]]:
    """The tools that are offered in a turn; what is held out comes with its turn."""
    missing = {name for when, names in record.held_out.items() if when > turn for name in names}
    offered = [tool for api in record.apis for tool in schemas()[api] if tool["function"]["name"] not in missing]
    return [*offered, REPLY_TOOL]


def names_of(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of some tools."""
    return [tool["function"]["name"] for tool in tools]


def _plan(record: Record) -> Iterator[Action]:
    world = World(record)
    for turn in record.gold:
        for call in turn:
            bound = world.signature(call.name).bind(*call.args, **call.kwargs)
            yield {"name": call.name, "arguments": dict(bound.arguments)}
        yield _reply("Done.")


def _reply(message: str) -> Action:
    return {"name": REPLY, "arguments": {"message": message}}


def _first(record: Record) -> str:
    return f"The user's first request: {record.turns[0]}"


def _request(record: Record, turn: int) -> str:
    new = record.held_out.get(turn, ())
    named = f"\nNew tools: {', '.join(new)}." if new else ""
    return f"The user's request number {turn + 1}: {record.turns[turn]}{named}"


def _shown(answer: str) -> str:
    """What the agent sees of an answer: no addresses of memory, no endless text, nothing that is no UTF-8."""
    text = _printable(_ADDRESS.sub("at 0x0", answer))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\n[{len(text) - MAX_SHOWN} characters cut]"


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
