"""Plays an environment in several ways and reports what breaks the contract of ``rollout.env``."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from harnesslab.rollout.env import SPLITS, Environment, Policy, Split, Task, TextEnv
from harnesslab.rollout.registry import load_environment
from harnesslab.testing.play import Moment, Played, describe, null_policy, oracle_of, play, trajectory_digest, walker
from harnesslab.testing.report import Finding, Report
from harnesslab.testing.shape import problems

NONSENSE: tuple[Any, ...] = (
    {},
    {"name": "no_such_tool_9", "arguments": {}},
    {"name": "no_such_tool_9", "arguments": "not an object"},
    {"name": 7, "arguments": None},
    "",
    "xyzzy plugh 9",
    "x" * 100_000,
    "\x00\ud800",
)
"""Actions that no environment can make sense of; a free-text one may take the texts for something."""
WALKED = 3
"""Tasks that are walked at random, spoilt, and sent nonsense."""
CHILD_TASKS = 5
CHILD_DEADLINE_S = 300.0
LATER_S = 400 * 86_400 + 3 * 3_600 + 7 * 60 + 11.0
"""How far the clock of the second child is ahead: another year, month, day, weekday, hour, minute and second."""


def check_env(
    env: str | Environment,
    *,
    split: Split = "search",
    limit: int | None = 20,
    null_floor: float = 0.0,
    processes: bool = True,
    **options: Any,
) -> Report:
    """Check an environment on the first ``limit`` tasks of a split (None: all) and return a report.

    ``env`` is what :func:`~harnesslab.rollout.registry.load_environment` takes; only a name or an import path can
    be checked across processes. ``null_floor`` is the share of tasks that a null agent is known to solve.
    Raises EnvironmentUnavailable where the environment or its data is missing.
    """
    environment = load_environment(env, **options)
    tasks = list(environment.tasks(split))[:limit]
    report = Report(environment.name, environment.version, split, len(tasks))
    check = _Check(environment, report)
    check.splits()
    check.oracle_and_repeats(tasks)
    check.null(tasks, null_floor)
    for task in tasks[:WALKED]:
        check.isolation(task)
        check.walk(task)
        check.nonsense(task)
    if not tasks:
        check.found("splits", "", f"the split {split} has no tasks")
    elif not processes:
        report.skipped["processes"] = "not asked for"
    elif not isinstance(env, str):
        report.skipped["processes"] = "give the name or 'module:callable' instead of an object"
    else:
        check.processes(env, options, tasks[:CHILD_TASKS])
    return report


class _Check:
    """The checks of one environment; they write into the report."""

    def __init__(self, environment: Environment, report: Report):
        self.environment = environment
        self.report = report
        self._known: set[tuple[str, str]] = set()

    def found(self, check: str, task: str, message: str) -> None:
        """Note a finding; the same message on another task is noted once."""
        if (check, message) not in self._known:
            self._known.add((check, message))
            self.report.findings.append(Finding(check, task, message))

    def splits(self) -> None:
        """Each split holds tasks of its own: ids are unique, and no two splits share a seed with the same options."""
        owner: dict[str, str] = {}
        content: dict[str, str] = {}
        for split in SPLITS:
            tasks = self.environment.tasks(split)
            if not tasks:
                self.found("splits", "", f"the split {split} has no tasks")
            for task in tasks:
                if task.split != split:
                    self.found("splits", task.id, f"it is in the split {split} but says {task.split}")
                if task.id in owner:
                    self.found("splits", task.id, f"the id is used in {owner[task.id]} and again in {split}")
                owner[task.id] = split
                key = json.dumps([task.seed, dict(task.options)], sort_keys=True, default=repr)
                if content.setdefault(key, split) != split:
                    self.found("splits", task.id, f"the same seed and options are also in {content[key]}")

    def oracle_and_repeats(self, tasks: Sequence[Task]) -> None:
        """Play the oracle in a fresh instance, in the same one again, and in another fresh one."""
        resets, steps = [], []
        without = 0
        for task in tasks:
            env = self.environment.make()
            first = self._oracle(env, task)
            self.look(task, first)
            if first.solved:
                self.report.oracle_solved += 1
            elif oracle_of(self.environment, task) is None:
                without += 1
            else:
                self.found("oracle", task.id, first.broken or f"not solved in {len(first.moments) - 1} steps")
            resets += [moment.seconds for moment in first.moments[:1]]
            steps += [moment.seconds for moment in first.moments[1:]]
            again = self._oracle(env, task)
            self.close(env, task)
            other = self._oracle(None, task)
            if first.difference(other):
                self.found("repeat", task.id, f"a second instance behaved differently: {first.difference(other)}")
            elif first.difference(again):
                self.found("reset", task.id, f"the second episode of an instance: {first.difference(again)}")
        if without:
            self.report.skipped["oracle"] = f"{without} of {len(tasks)} tasks have no oracle"
        self.report.reset_ms = 1e3 * statistics.median(resets) if resets else 0.0
        self.report.step_ms = 1e3 * statistics.median(steps) if steps else 0.0

    def null(self, tasks: Sequence[Task], floor: float) -> None:
        """Play the null agent; it may solve ``floor`` of the tasks."""
        solved = []
        for task in tasks:
            played = self._play(None, task, null_policy(self.environment, task))
            self.look(task, played)
            solved += [task.id] if played.solved else []
        self.report.null_solved = len(solved)
        if len(solved) > floor * len(tasks):
            self.found("null", solved[0], f"solved {len(solved)} of {len(tasks)} tasks")

    def isolation(self, task: Task) -> None:
        """Empty all that is returned; the episode must be the same."""
        clean, spoilt = self._oracle(None, task), self._oracle(None, task, spoil=True)
        if clean.difference(spoilt):
            self.found("isolation", task.id, f"info was emptied by its receiver, and then {clean.difference(spoilt)}")
        after = self._oracle(None, task)
        if clean.difference(after):
            self.found("isolation", task.id, "info was emptied by its receiver, and the next episode differs")

    def walk(self, task: Task) -> None:
        """Take admissible actions at random; each must be understood, and the walk must repeat."""
        first, second = (self._play(None, task, walker(0)) for _ in range(2))
        self.look(task, first)
        if first.difference(second):
            self.found("repeat", task.id, f"a random walk behaved differently: {first.difference(second)}")
        before = first.moments[:1]
        for moment in first.moments[1:]:
            listed = _public(before[-1]).get("admissible")
            if listed and moment.action in listed and _public(moment).get("invalid"):
                message = f"{describe(moment.action)} was listed as admissible and not understood"
                self.found("admissible", task.id, message)
            before.append(moment)
        if first.broken:
            self.found("admissible", task.id, first.broken)

    def nonsense(self, task: Task) -> None:
        """Send actions that make no sense, each in a new episode."""
        for action in NONSENSE:
            played = self._play(None, task, lambda _observation, _info, action=action: action, budget=1)  # type: ignore[misc]
            self.look(task, played)
            if played.broken:
                self.found("invalid", task.id, played.broken)
            elif _must_be_invalid(action, played.moments[0]) and _public(played.moments[-1]).get("invalid") is not True:
                message = f"{describe(action)} was not understood, but info['public']['invalid'] is not true"
                self.found("invalid", task.id, message)

    def processes(self, name: str, options: dict[str, Any], tasks: Sequence[Task]) -> None:
        """Play in two child processes with other hash seeds, the second one more than a year later, and compare with this one."""
        here = {task.id: trajectory_digest(self.environment, task, self.environment.max_steps) for task in tasks}
        request = {"environment": name, "options": options, "split": self.report.split, "tasks": list(here)}
        for hash_seed, later in (("1", 0.0), ("2", LATER_S)):
            # -m finds modules as this process does, also those of a test's folder.
            variables = {
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            }
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "harnesslab.testing.child"],
                    input=json.dumps({**request, "later": later}, default=str),
                    env=variables,
                    capture_output=True,
                    encoding="utf-8",
                    timeout=CHILD_DEADLINE_S,
                    check=True,
                )
            except subprocess.TimeoutExpired:
                self.found("processes", "", f"a child process took more than {CHILD_DEADLINE_S:.0f} s")
                return
            except subprocess.CalledProcessError as error:
                last = (error.stderr or "").strip().splitlines()[-1:] or ["no message"]
                self.found("processes", "", f"a child process failed: {last[0][:300]}")
                return
            there = json.loads(done.stdout.splitlines()[-1])
            for task_id, digest in here.items():
                if there.get(task_id) != digest:
                    when = ", its clock a year ahead," if later else ""
                    what = f"another process with a different hash seed{when} gave a different trajectory"
                    self.found("processes", task_id, what)
            if self.report.failures("processes"):
                return

    def look(self, task: Task, played: Played) -> None:
        """Note what is wrong with each moment."""
        for moment in played.moments:
            for check, message in problems(moment, task):
                self.found(check, task.id, message)
        if played.broken and not played.broken.startswith("the policy"):
            self.found("protocol", task.id, played.broken)

    def close(self, env: TextEnv, task: Task) -> None:
        """Close twice."""
        for time in ("first", "second"):
            try:
                env.close()
            except Exception as error:  # noqa: BLE001 - an environment may raise anything
                self.found("close", task.id, f"the {time} close raised {type(error).__name__}: {error}")
                return

    def _oracle(self, env: TextEnv | None, task: Task, *, spoil: bool = False) -> Played:
        policy = oracle_of(self.environment, task) or walker(1)
        return self._play(env, task, policy, spoil=spoil)

    def _play(
        self, env: TextEnv | None, task: Task, policy: Policy, *, budget: int | None = None, spoil: bool = False
    ) -> Played:
        """Play in ``env``, or in a fresh instance that is closed afterwards."""
        steps = self.environment.max_steps if budget is None else budget
        if env is not None:
            return play(env, task, policy, steps, spoil=spoil)
        fresh = self.environment.make()
        try:
            return play(fresh, task, policy, steps, spoil=spoil)
        finally:
            # A close that raises is told by the check of close, not here.
            with suppress(Exception):
                fresh.close()


def _public(moment: Moment) -> dict[str, Any]:
    part = moment.info.get("public")
    return part if isinstance(part, dict) else {}


def _must_be_invalid(action: Any, start: Moment) -> bool:
    """A call of no known tool always; a text only where the possible actions are listed."""
    return isinstance(action, dict) or bool(_public(start).get("admissible"))
