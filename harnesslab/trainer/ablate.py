"""Ablation: the baseline without each of its interventions, and proposals to retire what no longer helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.analysis.effects import Trial, estimate
from harnesslab.analysis.standing import interventions
from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError
from harnesslab.harness.load import load_harness
from harnesslab.harness.pipeline import Pipeline
from harnesslab.lab import Lab
from harnesslab.llm.types import MinimalBackbone
from harnesslab.plaintext import counted
from harnesslab.rollout.env import Split
from harnesslab.rollout.loop import run_sync
from harnesslab.rollout.progress import Bar
from harnesslab.rollout.records import Run
from harnesslab.trainer.conditions import Conditions
from harnesslab.trainer.latest import latest
from harnesslab.trainer.measure import Measurer
from harnesslab.trainer.pairs import changed_tasks, pair_up
from harnesslab.trainer.panel import Panel
from harnesslab.trainer.parts import check_parts
from harnesslab.trainer.proposal import Evidence, Proposal, Proposals, layer_of
from harnesslab.trainer.trainer import Trainer

COLUMNS = ["intervention", "fired", "with", "without", "of", "helped", "hurt", "points", "low", "high", "retire"]
PURPOSE = "ablate"
"""The purpose of the runs without one intervention."""


class Ablation(Table):
    """One row an intervention. ``proposals`` holds one to retire each that no longer helps, ready for a panel or ``trainer.evaluate``."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], proposals: Proposals, title: str):
        super().__init__(rows, title=title, columns=COLUMNS)
        self.proposals = proposals


def ablate(
    lab: Lab,
    llm: MinimalBackbone | None = None,
    *,
    split: Split = "search",
    limit: int | None = None,
    trainer: Trainer | None = None,
    progress: bool = True,
) -> Ablation:
    """Measure the baseline without each of its interventions, and propose to retire those that no longer help.

    ``fired``, ``helped`` and ``hurt`` count tasks: where it fired, and of these the ones that only the harness with it solved, or only the
    one without. ``points`` is its effect on the solve rate with a 95% interval. One that never fired is not played without:
    it did nothing. Retired is what never fired, or hurt at least as often as it helped. Conditions and backbone are those of the ``trainer``, by
    default the lab's last one in this kernel. What was played before is not played again. ``split``: ``search``, since a look at the gate is better
    spent on the proposals. Raises ConfigError where no backbone is known.
    """
    if split not in ("search", "gate"):
        raise ConfigError(f"ablate plays the search or the gate split, not {split!r:.40}")
    last: Trainer | None = trainer if trainer is not None else latest()
    if trainer is not None and trainer.lab.path != lab.path:
        raise ConfigError(f"trainer belongs to the lab {trainer.lab.path}, not to {lab.path}")
    if last is not None and last.lab.path != lab.path:
        last = None
    check_parts(llm=llm)
    backbone = llm if llm is not None else last.llm if last is not None else None
    if backbone is None:
        raise ConfigError("no backbone is known: pass one, hl.ablate(lab, llm=...)")
    conditions = last.conditions if last is not None else Conditions.remembered(lab)
    baseline = lab.repo.baseline()
    own = interventions(lab.repo.files(baseline))
    panel, measurer = conditions.panel(split, None, limit), conditions.measurer(backbone)
    measured = _measure(measurer, baseline, panel, progress)
    rows, retired = [], []
    for name in own:
        proposal = _retirement(name, own[name])
        fired = {episode.task_id for episode in measured.scorable if episode.fired.get(name)}
        without = _without(measurer, baseline, panel, proposal, progress) if fired else measured
        row, proposal = _compare(name, measured, without, fired, proposal)
        rows.append(row)
        retired += [proposal] if row["retire"] else []
    proposals = Proposals(retired, ranked_by="ablation")
    proposals.trainer = last
    played = counted(measured.tasks, "task")
    table = Ablation(rows, proposals, f"ablation of {counted(len(own), 'intervention')}, {split} split, {played}")
    if retired:
        table.notes.append(
            f"{counted(len(retired), 'proposal')} to retire in .proposals; look at them with hl.panels.interventions(...)."
        )
    return table


def _measure(measurer: Measurer, commit: str, panel: Panel, progress: bool) -> Run:
    bar = Bar("ablate: whole", len(panel), show=progress)
    try:
        return run_sync(measurer.measure(commit, panel, bar), bar.tick)
    finally:
        bar.close()


def _without(measurer: Measurer, commit: str, panel: Panel, proposal: Proposal, progress: bool) -> Run:
    harness = load_harness(proposal.apply(measurer.lab.repo.files(commit)), unconfined=measurer.lab.unconfined)
    pipelines = {task.id: Pipeline(harness) for task in panel.tasks}
    mixed = {"proposals": [proposal.to_json()], "on": {task.id: [proposal.content] for task in panel.tasks}}
    bar = Bar(f"ablate: without {proposal.name}", len(panel), show=progress)
    try:
        work = measurer.measure_mixed(commit, panel, bar, pipelines, mixed, purpose=PURPOSE)
        return run_sync(work, bar.tick)
    finally:
        bar.close()


def _retirement(name: str, files: Mapping[str, bytes]) -> Proposal:
    return Proposal(dict.fromkeys(files), layer_of(next(iter(files))), "retire", name, "", estimator="ablation")


def _compare(
    name: str, whole: Run, without: Run, fired: set[str], proposal: Proposal
) -> tuple[dict[str, Any], Proposal]:
    pairs = [pair for pair in pair_up(without, whole) if pair.scorable]
    gained, lost = (tasks & fired for tasks in changed_tasks(pairs))
    trials = [Trial(p.task, frozenset({name}), p.after.solved) for p in pairs]
    trials += [Trial(p.task, frozenset(), p.before.solved) for p in pairs] if fired else []
    effect = estimate(trials, [name])[0]
    retire = not fired or len(lost) >= len(gained)
    row = {
        "intervention": name,
        "fired": len(fired),
        "with": whole.solved,
        "without": without.solved,
        "of": whole.tasks,
        "helped": len(gained),
        "hurt": len(lost),
        "points": round(effect.points, 1),
        "low": round(effect.low, 1),
        "high": round(effect.high, 1),
        "retire": retire,
    }
    why = f"on {counted(len(fired), 'task')} where it fired it won {len(gained)} and lost {len(lost)}"
    if not fired:
        why = f"it fired on none of {counted(whole.tasks, 'task')}"
    about = f"Retire it: {why}."
    evidence = tuple(Evidence(task, None, 0, "solved only without it") for task in sorted(lost))
    return row, Proposal(
        proposal.changes, proposal.layer, proposal.kind, name, about, evidence, estimator=proposal.estimator
    )
