"""Says of each task whether it can be played, what its oracle gets, and what an agent gets that does nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harnesslab.errors import EnvironmentFault, HarnesslabError, NothingPlayable
from harnesslab.markup import table
from harnesslab.plaintext import columns
from harnesslab.rollout.env import SPLITS, Environment, Split, Task, step_budget, tasks_of
from harnesslab.rollout.null import null_of
from harnesslab.rollout.nullsolved import keep
from harnesslab.rollout.process.folder import MANIFEST, is_path
from harnesslab.rollout.registry import load_environment
from harnesslab.testing.play import oracle_of, play

TASK_FOLDERS = {"terminal": ("task.toml", "task.yaml", "task.yml")}
"""Environments that play a folder of tasks (their option ``tasks``), and the files by which such a folder is known."""
WORDS = {True: "solved", False: "not solved"}


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task. ``oracle`` and ``null`` say ``solved``, ``not solved``, or why there is no result; ``reason`` says what is
    wrong with the task, and is empty where nothing is."""

    task: str
    split: str
    playable: bool
    oracle: str = "-"
    oracle_reward: float | None = None
    null: str = "-"
    null_reward: float | None = None
    reason: str = ""


@dataclass(slots=True)
class TaskTable:
    """The tasks of one environment; shows itself as a table. ``unchecked`` counts those that a limit has left."""

    environment: str
    version: str
    rows: list[TaskRow] = field(default_factory=list)
    unchecked: int = 0

    @property
    def ok(self) -> bool:
        """True if there are tasks, each can be played, is solved by its oracle if it has one, and not by the null agent."""
        return bool(self.rows) and not any(
            row.reason for row in self.rows if row.oracle != "none" or row.null == "solved" or not row.playable
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        return {
            **self.counts(),
            "environment": self.environment,
            "version": self.version,
            "tasks": list(map(asdict, self.rows)),
        }

    def counts(self) -> dict[str, int]:
        """How many tasks there are of each sort."""
        return {
            "checked": len(self.rows),
            "unchecked": self.unchecked,
            "playable": sum(row.playable for row in self.rows),
            "oracle_solved": sum(row.oracle == "solved" for row in self.rows),
            "without_oracle": sum(row.oracle == "none" for row in self.rows),
            "null_solved": sum(row.null == "solved" for row in self.rows),
        }

    def cells(self) -> list[tuple[str, ...]]:
        """A heading and one row a task, as texts."""
        rows = [
            (
                row.task if row.task.isprintable() else repr(row.task),
                row.split,
                "yes" if row.playable else "no",
                _cell(row.oracle, row.oracle_reward),
                _cell(row.null, row.null_reward),
                " ".join(row.reason.split()),
            )
            for row in self.rows
        ]
        return [("task", "split", "playable", "oracle", "null agent", "why"), *rows]

    def heading(self) -> str:
        """The counts in words."""
        counts = self.counts()
        if not self.rows:
            return f"{self.environment} {self.version}: no tasks"
        without = f", {counts['without_oracle']} without an oracle" if counts["without_oracle"] else ""
        left = f"; {self.unchecked} more were not checked" if self.unchecked else ""
        return (
            f"{self.environment} {self.version}: {counts['playable']}/{len(self.rows)} tasks playable, oracle solved "
            f"{counts['oracle_solved']}{without}, null agent solved {counts['null_solved']}{left}"
        )

    def __str__(self) -> str:
        return "\n".join([*columns(self.cells()), self.heading()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        return str(table(head, rows, caption=self.heading()))


def target(name: str) -> tuple[str, dict[str, Any]]:
    """(environment, options) of a name, an environment's folder, or a folder of tasks that some environment plays."""
    path = Path(name).expanduser()
    if path.is_dir() and not (path / MANIFEST).is_file() and (is_path(name) or _is_tasks(path)) and ":" not in name:
        for environment, files in TASK_FOLDERS.items():
            if _is_tasks(path, files):
                return environment, {"tasks": str(path.resolve())}
    return name, {}


def check_tasks(
    env: str | Environment,
    *,
    splits: Sequence[Split] = SPLITS,
    limit: int | None = None,
    told: Callable[[TaskRow], None] = lambda _: None,
    **options: Any,
) -> TaskTable:
    """Play the oracle and the null agent on the tasks of ``splits``, on the first ``limit`` of each (None: on all).

    ``env`` and ``options`` are what :func:`~harnesslab.rollout.registry.load_environment` takes, or a folder of tasks.
    ``told`` is called with each row as soon as it is there. Which tasks the null agent solves is kept: the environment is
    loaded without them from then on, unless it is asked for with ``null_solved=True``. Raises EnvironmentUnavailable
    where the environment or its data is missing.
    """
    if isinstance(env, str):
        env, found = target(env)
        options = {**found, **options}
    try:
        environment = load_environment(env, null_solved=True, **options) if isinstance(env, str) else env
        # An environment in a process of its own is made at the first question.
        table = TaskTable(environment.name, environment.version)
    except NothingPlayable as error:
        rows = [TaskRow(name, "-", False, reason=reason) for name, reason in error.unplayable.items()]
        return TaskTable(str(env), "", rows)
    for row in _rows(environment, splits, limit, table):
        table.rows.append(row)
        told(row)
    played = [row for row in table.rows if row.playable]
    keep(environment, [row.task for row in played], [row.task for row in played if row.null == "solved"])
    return table


def _rows(environment: Environment, splits: Sequence[Split], limit: int | None, table: TaskTable) -> Iterator[TaskRow]:
    unplayable: Mapping[str, str] = getattr(environment, "unplayable", None) or {}
    for name, reason in unplayable.items():
        yield TaskRow(name, "-", False, reason=reason)
    for split in splits:
        tasks = tasks_of(environment, split)
        table.unchecked += len(tasks[limit:]) if limit is not None else 0
        for task in tasks[:limit]:
            yield _row(environment, task)


def _row(environment: Environment, task: Task) -> TaskRow:
    oracle, reward, broken = _result(environment, task, "oracle")
    if broken:
        return TaskRow(task.id, task.split, False, reason=broken)
    null, null_reward, broken = _result(environment, task, "null")
    if broken:
        return TaskRow(task.id, task.split, False, oracle, reward, reason=broken)
    reasons = ["the null agent solves it, so it is left out of panels"] if null == "solved" else []
    if oracle == "none":
        reasons.append("it has no oracle")
    elif oracle != "solved":
        reasons.append("its oracle does not solve it" if oracle == "not solved" else oracle)
    return TaskRow(task.id, task.split, True, oracle, reward, null, null_reward, "; ".join(reasons))


def _result(environment: Environment, task: Task, who: str) -> tuple[str, float | None, str]:
    """(what came out, the last reward, why the task cannot be played)."""
    try:
        policy = null_of(environment, task) if who == "null" else oracle_of(environment, task)
    except EnvironmentFault as error:
        return f"the {who} failed: {error}", None, ""
    except HarnesslabError:
        raise
    except Exception as error:  # noqa: BLE001 - an environment may raise anything
        return f"the {who} raised {type(error).__name__}: {error}", None, ""
    if policy is None:
        return "none", None, ""
    env = environment.make()
    try:
        played = play(env, task, policy, step_budget(environment))
    finally:
        with suppress(Exception):
            env.close()
    if played.broken and not played.broken.startswith("the policy"):
        return "-", None, played.broken
    reward = played.moments[-1].reward if played.moments else None
    number = float(reward) if isinstance(reward, int | float) else None
    return (played.broken.replace("the policy", f"the {who}", 1) or WORDS[played.solved]), number, ""


def _is_tasks(path: Path, files: Sequence[str] = sum(TASK_FOLDERS.values(), ())) -> bool:
    """Whether a folder is a task, or holds one."""
    return any((place / file).is_file() for place in (path, *path.iterdir()) for file in files)


def _cell(word: str, reward: float | None) -> str:
    graded = reward is not None and word in WORDS.values() and reward not in (0.0, 1.0)
    return f"{word} ({reward:g})" if graded else word if len(word) <= 20 else "failed"
