"""Questions about tables, answered with SQL: one episode on one fresh database.

The agent has two tools. ``execute_sql`` runs a statement and shows its rows, or its error, as text.
``commit_final_answer`` ends the episode and is judged. A statement that the database refuses is a valid action
with an error for an observation; ``invalid`` is kept for actions that name no tool or do not fit its schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, OrderError
from harnesslab.rollout.env import JSON, Action, Policy, Split, Task
from harnesslab_envs.dbbench.engines import Database, Engine, SQLite
from harnesslab_envs.dbbench.grading import answers_match, rows_hold
from harnesslab_envs.dbbench.records import Record
from harnesslab_envs.dbbench.sandbox import Result
from harnesslab_envs.picking import picked

MAX_SHOWN = 800
"""Characters of a result that the agent is shown, as in AgentBench."""
MAX_STEPS = 10
"""Ten statements are plenty for one table; AgentBench allows 15 to 20."""
GREETING = "The {engine} database is ready."

TOOLS: tuple[dict[str, JSON], ...] = (
    {
        "type": "function",
        "function": {
            "name": "execute_sql",
            "description": "Run one SQL statement on the {engine} database. Returns the rows, or the error.",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": "One SQL statement."}},
                "required": ["query"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "commit_final_answer",
            "description": "Commit the final answer. This ends the task. Where the task is to change the table, "
            "change it first; the answer can then be anything.",
            "parameters": {
                "type": "object",
                "properties": {
                    "answers": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "The values that answer the question, exactly as they are in the table.",
                    }
                },
                "required": ["answers"],
                "additionalProperties": False,
            },
        },
    },
)


class TableEnv:
    """One instance; ``options["record"]`` of :meth:`reset` names the task.

    Private info: ``solved``; ``progress``, the furthest of three marks (1/3 some statement ran without an
    error, 2/3 a result held every value of the answer, or the table was as it should be, 1 solved);
    ``statements`` and ``sql_errors``, counted.
    """

    def __init__(self, records: Mapping[str, Record], engine: Engine | None = None):
        self._records = records
        self._engine = engine or SQLite()
        self._record: Record | None = None
        self._database: Database | None = None
        self._targets: frozenset[str] | None = None
        self._mark = 0
        self._solved = False
        self._statements = 0
        self._errors = 0

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, JSON] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """A fresh database for the record; ``seed`` changes nothing, as nothing here is random."""
        record = picked(options, "record", self._records)
        self.close()
        self._record, self._database = record, self._engine.open(record.tables)
        self._targets = None
        self._mark, self._solved, self._statements, self._errors = 0, False, 0, 0
        return GREETING.format(engine=self._engine.name), self._info()

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run a statement or take the final answer; see :class:`harnesslab.rollout.env.TextEnv`."""
        if self._database is None or self._record is None:
            raise OrderError("No episode is running: call reset() first.")
        call = _read_call(action)
        if isinstance(call, str):
            return call, 0.0, False, False, self._info(invalid=True)
        tool, argument = call
        if tool == "execute_sql":
            return self._query(argument), 0.0, False, False, self._info()
        self._solved = self._judge(argument)
        self._mark = 3 if self._solved else self._mark
        self.close()
        return "The answer was committed.", float(self._solved), True, False, self._info()

    def close(self) -> None:
        """Drop the database. Safe to call twice."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _query(self, query: str) -> str:
        assert self._database is not None
        result = self._database.execute(query)
        self._statements += 1
        if result.error:
            self._errors += 1
            return clip(f"Error: {result.error}")
        self._mark = max(self._mark, 2 if self._nearly(result) else 1)
        return clip(str(list(result.rows)))

    def _nearly(self, result: Result) -> bool:
        """Is all that is missing to commit? For the progress metric only."""
        assert self._record is not None
        return self._table_is_right() if self._record.changes else rows_hold(result.rows, self._record.label)

    def _judge(self, answers: JSON) -> bool:
        assert self._record is not None
        return self._table_is_right() if self._record.changes else answers_match(answers, self._record.label)

    def _table_is_right(self) -> bool:
        assert self._database is not None and self._record is not None
        if self._targets is None:
            self._targets = self._engine.targets(self._record)
        return self._database.hash(self._record.tables) in self._targets

    def _info(self, invalid: bool = False) -> dict[str, Any]:
        assert self._record is not None
        return {
            "public": {"instruction": self._record.instruction, "tools": tools(self._engine), "invalid": invalid},
            "private": {
                "solved": self._solved,
                "progress": self._mark / 3,
                "statements": self._statements,
                "sql_errors": self._errors,
            },
        }


@dataclass(frozen=True, slots=True)
class Content:
    """What an environment over records holds: the records by id, their splits, and a version of all that."""

    records: Mapping[str, Record]
    splits: Mapping[Split, Sequence[Task]]
    version: str


class TableTasks:
    """An Environment over records: what ``dbbench`` and ``tables`` are.

    ``load`` is called when the content is first asked for; it may raise EnvironmentUnavailable.
    """

    max_steps = MAX_STEPS

    def __init__(self, name: str, load: Callable[[], Content], engine: Engine | None = None):
        self.name = name
        self._load = load
        self._engine = engine or SQLite()
        self._loaded: Content | None = None

    @property
    def version(self) -> str:
        """Version of the code, of the data that was read, and of an engine other than SQLite. Raises
        EnvironmentUnavailable where data or engine are missing."""
        return self._content().version + self._engine.tag

    def tasks(self, split: Split) -> Sequence[Task]:
        """The tasks of a split, families mixed evenly. Raises EnvironmentUnavailable where data is missing."""
        assert self._engine.tag is not None  # raises where the engine is missing
        splits = self._content().splits
        if split not in splits:
            raise EnvironmentFault(f"{self.name} has no split '{split}'; it has {', '.join(splits)}.")
        return splits[split]

    def make(self) -> TableEnv:
        """A new instance."""
        return TableEnv(self._content().records, self._engine)

    def oracle(self, task: Task) -> Policy:
        """Runs the ground-truth statement, where the task is a change, and commits the label."""
        record = self._content().records[task.id]
        plan: list[Action] = [call("commit_final_answer", answers=list(record.label))]
        if record.changes:
            plan = [call("execute_sql", query=self._engine.gold(record)), call("commit_final_answer", answers=["done"])]
        actions = iter(plan)
        return lambda _observation, _info: next(actions, plan[-1])

    def null(self, task: Task) -> Policy:
        """Commits an empty answer at once: the floor that a harness must beat."""
        return lambda _observation, _info: call("commit_final_answer", answers=[])

    def starter(self) -> Path:
        """The folder with the baseline harness."""
        return self._engine.starter

    def _content(self) -> Content:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded


# A single value is taken for a list of one, and a string may itself hold a list, as AgentBench takes them.
_ARGUMENTS: dict[str, tuple[str, tuple[type, ...]]] = {
    "execute_sql": ("query", (str,)),
    "commit_final_answer": ("answers", (list, str, int, float)),
}


def call(name: str, **arguments: JSON) -> Action:
    """A tool call as an action."""
    return {"name": name, "arguments": arguments}


def tools(engine: Engine) -> list[dict[str, JSON]]:
    """The schemas, with the engine's name; a copy, as what a harness does to them must not reach the next episode."""
    copied = deepcopy(list(TOOLS))
    function: Any = copied[0]["function"]
    function["description"] = function["description"].format(engine=engine.name)
    return copied


def clip(text: str) -> str:
    """Text as the agent is shown it, with AgentBench's mark where it was cut."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "[TRUNCATED]"


def _read_call(action: Any) -> tuple[str, JSON] | str:
    """(tool, its argument), or what is wrong with the action, in words for the agent."""
    known = "The tools are execute_sql with a 'query' and commit_final_answer with a list of 'answers'."
    if not isinstance(action, dict) or not isinstance(action.get("name"), str):
        return f"That is no tool call. {known}"
    name, arguments = action["name"], action.get("arguments")
    if name not in _ARGUMENTS:
        return f"There is no tool {name[:80]!r}. {known}"
    key, kinds = _ARGUMENTS[name]
    if not isinstance(arguments, dict) or set(arguments) != {key} or not isinstance(arguments[key], kinds):
        return f"{name} takes one argument, {key!r}. {known}"
    return name, arguments[key]
