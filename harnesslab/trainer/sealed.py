"""Opening the sealed split: on purpose, recorded, and never without the control beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError, EnvironmentUnavailable
from harnesslab.llm.control import RandomControl
from harnesslab.llm.types import MinimalBackbone
from harnesslab.plaintext import counted
from harnesslab.rollout.env import Split, Task, step_budget
from harnesslab.rollout.floors import SAMPLE, floors
from harnesslab.rollout.records import Run
from harnesslab.rollout.tasks import RULE
from harnesslab.trainer.conditions import Conditions
from harnesslab.trainer.parts import check_parts
from harnesslab.trainer.report import constant_note, floor_rows, result_row

COLUMNS = ["harness", "backbone", "solved", "of", "rate", "low", "high", "invalid", "steps", "forced", "unscorable"]


class Measure(Protocol):
    """Plays the sealed panel with the harness at a commit, and records the opening; ``llm`` in place of the training's own."""

    def __call__(self, split: Split, *, commit: str, llm: MinimalBackbone | None = None) -> Run: ...


def open_sealed(conditions: Conditions, measure: Measure, controls: Sequence[MinimalBackbone] | None = None) -> Table:
    """The held-out result: first and present baseline with the backbone, the present one with each control.

    What agents without a mind and the oracle solve frames it (:mod:`harnesslab.rollout.floors`). See :func:`~harnesslab.trainer.report.result_row` for the columns.
    """
    from harnesslab.analysis import statistics  # noqa: F401 - if its packages are missing, nothing is opened

    lab = conditions.lab
    start, trained = lab.repo.root(), lab.repo.baseline()
    panel = conditions.panel("sealed")
    # All that can fail without the model comes before the first opening is recorded.
    chosen = list(controls) if controls is not None else [RandomControl(0)]
    for control in chosen:
        check_parts(llm=control)
    for commit in (start, trained):
        lab.harness(commit)
    budget = conditions.settings.budget or step_budget(lab.environment)
    found = floors(lab.environment, panel.tasks, budget, _search(conditions))
    rows = []
    if start != trained:
        rows.append(result_row(lab, measure("sealed", commit=start), harness="start"))
    name = "trained" if start != trained else "start"
    rows.append(result_row(lab, measure("sealed", commit=trained), harness=name))
    for control in chosen:
        rows.append(result_row(lab, measure("sealed", commit=trained, llm=control), harness=name))
    known = sum(row["environment"] == lab.environment.name for row in lab.openings())
    size = counted(len(panel.tasks), "task") + (f" with {panel.repeats} repeats" if panel.repeats > 1 else "")
    title = f"sealed split of {lab.environment.name}, {size}, {counted(known, 'run')} on record"
    table = Table([*rows, *floor_rows(found)], title=title, columns=COLUMNS)
    if note := constant_note(found):
        table.notes.append(note)
    if any(row["forced"] >= 100 for row in rows):
        table.notes.append("No executed action was the model's own: the harness plays alone.")
    if panel.repeats > 1:
        table.notes.append(RULE)
    return table


def _search(conditions: Conditions) -> tuple[Task, ...]:
    """The tasks on which the constant answer is chosen, however few are trained on; none where the search split lacks the
    panel's families."""
    try:
        return conditions.panel("search", limit=SAMPLE).tasks
    except (ConfigError, EnvironmentUnavailable):
        return ()
