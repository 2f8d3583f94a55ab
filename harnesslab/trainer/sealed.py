"""Opening the sealed split: on purpose, recorded, and never without a control beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError, EnvironmentFault, EnvironmentUnavailable
from harnesslab.llm.types import MinimalBackbone
from harnesslab.plaintext import counted
from harnesslab.rollout.bounds import first_look
from harnesslab.rollout.deaf import DeafEnvironment
from harnesslab.rollout.env import Environment, Split, Task, step_budget
from harnesslab.rollout.floors import SAMPLE, floors
from harnesslab.rollout.loop import run_sync
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Run
from harnesslab.rollout.tasks import RULE
from harnesslab.trainer.conditions import Conditions
from harnesslab.trainer.controls import Controls, Sampled, attempts, chosen, cost, pooled
from harnesslab.trainer.report import constant_note, floor_rows, result_row, wilson_percent

COLUMNS = ["harness", "backbone", "solved", "of", "rate", "low", "high", "invalid", "steps", "forced", "unscorable"]
FIRST_SAMPLE = 900_000
"""The number of the first attempt of sampling: draws of their own, not those of other measurements."""


class Measure(Protocol):
    """Plays the sealed panel with the harness at a commit, and records the opening; ``llm`` in place of the training's own."""

    def __call__(self, split: Split, *, commit: str, llm: MinimalBackbone | None = None) -> Run: ...


def open_sealed(
    conditions: Conditions,
    measure: Measure,
    llm: MinimalBackbone,
    controls: Controls = None,
    seeds: int | None = None,
) -> Table:
    """The held-out result: first and present baseline with the backbone, the present one with each control.

    What agents without a mind and the oracle solve frames it (:mod:`harnesslab.rollout.floors`). See :func:`~harnesslab.trainer.report.result_row`
    for the columns; a control with several seeds is one row, in which the seeds of a task are one cluster.
    """
    from harnesslab.analysis import statistics  # noqa: F401 - if its packages are missing, nothing is opened

    lab = conditions.lab
    start, trained = lab.repo.root(), lab.repo.baseline()
    panel = conditions.panel("sealed")
    # All that can fail without the model comes before the first opening is recorded.
    played = chosen(controls, llm, seeds)
    notes = _undeafened(lab.environment, panel.tasks[0]) if any(control.name == "deaf" for control in played) else []
    if notes:
        played = [control for control in played if control.name != "deaf"]
    for commit in (start, trained):
        lab.harness(commit)
    budget = conditions.settings.budget or step_budget(lab.environment)
    found = floors(lab.environment, panel.tasks, budget, _search(conditions))
    if controls is not None and conditions.settings.progress:
        print(sealed_cost(conditions, llm, controls, seeds))
    rows = []
    first = measure("sealed", commit=start) if start != trained else None
    if first is not None:
        rows.append(result_row(lab, first, harness="start"))
    name = "trained" if start != trained else "start"
    own = measure("sealed", commit=trained)
    rows.append(result_row(lab, own, harness=name))
    for control in played:
        if control.backbones:
            runs = [measure("sealed", commit=trained, llm=backbone) for backbone in control.backbones]
            row = result_row(lab, pooled(runs), harness=name)
            rows.append(row | {"backbone": control.name if len(runs) > 1 else row["backbone"], "seeds": len(runs)})
        else:
            sampled, said = _sampling(conditions, llm, start, first, own)
            rows += [sampled] if sampled else []
            notes.append(said)
    known = sum(row["environment"] == lab.environment.name for row in lab.openings())
    size = counted(len(panel.tasks), "task") + (f" with {panel.repeats} repeats" if panel.repeats > 1 else "")
    title = f"sealed split of {lab.environment.name}, {size}, {counted(known, 'run')} on record"
    columns = COLUMNS + (["seeds"] if any(row.get("seeds", 1) > 1 for row in rows) else [])
    table = Table([*rows, *floor_rows(found)], title=title, columns=columns)
    if note := constant_note(found):
        table.notes.append(note)
    table.notes += notes
    if any(row.get("forced", 0) >= 100 for row in rows):
        table.notes.append("No executed action was the model's own: the harness plays alone.")
    if panel.repeats > 1:
        table.notes.append(RULE)
    return table


def _undeafened(environment: Environment, task: Task) -> list[str]:
    """Why there is no deaf control; empty where there is one."""
    try:
        first_look(DeafEnvironment(environment, 0), task)
    except EnvironmentFault as fault:
        return [f"deaf: {fault}."]
    return []


def sealed_cost(
    conditions: Conditions, llm: MinimalBackbone, controls: Controls = None, seeds: int | None = None
) -> Table:
    """What :func:`open_sealed` costs at most; see :func:`~harnesslab.trainer.controls.cost`. Opens nothing."""
    lab = conditions.lab
    runs = 2 if lab.exists and lab.repo.root() != lab.repo.baseline() else 1
    return cost(conditions, llm, chosen(controls, llm, seeds), len(conditions.panel("sealed")), runs)


def _sampling(
    conditions: Conditions, llm: MinimalBackbone, start: str, first: Run | None, trained: Run
) -> tuple[dict[str, Any] | None, str]:
    """The row of sampling with the first harness, and the sentence below the table; no row where one attempt is all that is paid for."""
    if first is None:
        return None, "sampling: the harness is the first one still, so there is nothing to match."
    count = attempts(first, trained)
    if count == 1:
        return None, "sampling: an episode with the present harness costs fewer tokens than two with the first one."
    measurer = conditions.measurer(Sampled(llm))
    panel = replace(conditions.panel("sealed"), repeats=count, first=FIRST_SAMPLE)
    measurer.record_opening(start, panel)
    bar = Bar(f"sampling, {count} attempts a task", len(panel), show=conditions.settings.progress)
    try:
        run = run_sync(measurer.measure(start, panel, bar, purpose="control"), bar.tick)
    finally:
        bar.close()
    won = sorted({episode.task_id for episode in run.scorable if episode.solved})
    row = result_row(conditions.lab, run, harness="start")
    low, high = wilson_percent(len(won), run.tasks)
    rate = round(100 * len(won) / run.tasks, 1) if run.tasks else 0.0
    said = (
        f"sampling: {count} attempts at each task with the first harness, for the tokens of one with the present one. Solved means that one "
        f"of them was, as if somebody picked the right one; a single one solves {row['rate']}%."
    )
    name = f"{row['backbone']}, best of {count}"
    return row | {"backbone": name, "solved": len(won), "rate": rate, "low": low, "high": high}, said


def _search(conditions: Conditions) -> tuple[Task, ...]:
    """The tasks on which the constant answer is chosen, however few are trained on; none where the search split lacks the
    panel's families."""
    try:
        return conditions.panel("search", limit=SAMPLE).tasks
    except (ConfigError, EnvironmentUnavailable):
        return ()
