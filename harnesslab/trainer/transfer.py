"""Freeze the harness, change the model: does what was learned with one help another?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harnesslab.analysis.table import Table
from harnesslab.lab import Lab
from harnesslab.llm.types import Backbone
from harnesslab.rollout.env import Environment, Split, step_budget
from harnesslab.rollout.loop import run_sync
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.registry import load_environment
from harnesslab.trainer.measure import Measurer, choose_panel
from harnesslab.trainer.report import result_row


def transfer(
    lab: Lab,
    models: Sequence[Backbone],
    envs: Sequence[str | Environment] | None = None,
    *,
    split: Split = "gate",
    limit: int | None = None,
    progress: bool = True,
) -> Table:
    """A matrix: each model, in each environment, with the lab's first harness and with its present one.

    ``envs``: names or objects, by default the lab's own. ``gain`` is the difference in solved tasks. Put
    ``LLM.random(0)`` among the models to see what the harness solves alone. The sealed split is not opened by this
    unless ``split`` says so, and then each opening is recorded.
    """
    rows = []
    for environment in [load_environment(env) for env in envs or [lab.environment]]:
        panel = choose_panel(environment.tasks(split), split, limit=limit)
        for model in models:
            rows.append(_compare(lab, environment, model, panel, progress))
    columns = ["environment", "model", "start", "trained", "of", "gain", "start %", "trained %", "forced %"]
    return Table(rows, title=f"transfer of {lab.path.name}, {split} split", columns=columns)


def _compare(lab: Lab, environment: Environment, model: Backbone, panel: Any, progress: bool) -> dict[str, Any]:
    measurer = Measurer(lab, model, budget=step_budget(environment), environment=environment)
    found = {}
    for name, commit in (("start", lab.repo.root()), ("trained", lab.repo.baseline())):
        bar = Bar(f"{environment.name}, {model.identity.get('model')}: {name}", len(panel), show=progress)
        measurer.record_opening(commit, panel)
        run = run_sync(measurer.measure(commit, panel, bar, purpose="transfer"), bar.tick)
        bar.close()
        found[name] = result_row(lab, run, harness=name)
    start, trained = found["start"], found["trained"]
    return {
        "environment": environment.name,
        "model": trained["backbone"],
        "start": start["solved"],
        "trained": trained["solved"],
        "of": trained["of"],
        "gain": trained["solved"] - start["solved"],
        "start %": start["rate"],
        "trained %": trained["rate"],
        "forced %": trained["forced"],
    }
