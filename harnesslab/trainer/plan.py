"""A plan: what a training will cost, the smallest gain it can resolve, and how often it promotes what changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError
from harnesslab.lab import Lab
from harnesslab.llm.types import MinimalBackbone
from harnesslab.plaintext import counted
from harnesslab.rollout.env import step_budget
from harnesslab.rollout.identity import identity_of
from harnesslab.rollout.records import Episode
from harnesslab.trainer.conditions import Conditions
from harnesslab.trainer.criterion import Criterion
from harnesslab.trainer.design import Design, Screening
from harnesslab.trainer.looks import coming
from harnesslab.trainer.panel import Panel
from harnesslab.trainer.power import TRIALS, least_gain, simulate
from harnesslab.trainer.typical import COSTS, cost_of, proposer_cost, typical_episode

WORK = 25_000
"""Episodes on one side of a simulated panel times candidates; larger panels get fewer candidates."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``trainer.plan()`` found; it shows itself as tables.

    ``episodes``, ``calls``, ``tokens``, ``money`` and ``seconds`` are upper bounds for the whole training, as ``cost`` has them step by step; None: not known yet.
    ``least`` is how many more tasks a candidate must solve, with none lost, to be promoted; None: no gain can be. ``gain`` is the smallest
    true gain in points that is promoted with 80% power, and ``false`` the chance that a candidate that changes nothing is
    promoted, both for the worst kind of tasks in ``rates``.
    """

    episodes: int
    calls: int | None
    tokens: int | None
    money: float | None
    seconds: float | None
    least: int | None
    gain: int | None
    false: float
    cost: Table
    rates: Table

    def __repr__(self) -> str:
        return f"{self.cost!r}\n\n{self.rates!r}"

    def _repr_html_(self) -> str:
        return self.cost._repr_html_() + self.rates._repr_html_()


def plan(
    conditions: Conditions,
    criterion: Criterion,
    design: Design,
    llm: MinimalBackbone,
    epochs: int,
    estimator: object = None,
) -> Plan:
    """The plan of a training of so many epochs under these conditions, from the settings and from what is on record; plays and writes nothing."""
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise ConfigError(f"plan needs a whole number of epochs of at least 1, not {epochs!r:.40}")
    search, gate = conditions.panel("search"), conditions.panel("gate")
    cost = _cost(conditions, design, llm, (search, gate), epochs, estimator)
    total = cost[-1]
    baseline, basis = _baseline(conditions.lab, gate)
    solved = sum(episode.solved for episode in baseline)
    mean = (solved + 1) / (len(baseline) + 2)
    looks = coming(conditions.lab, criterion, epochs)
    least, tasks = least_gain(looks[0], baseline), len(gate.tasks)
    trials = max(60, min(TRIALS, WORK // len(gate)))
    found = simulate(looks, tasks, gate.repeats, mean=mean, trials=trials)
    rates = Table(
        [
            {
                "tasks": kind.kind,
                "false promotions": f"{100 * kind.false:.1f}%",
                "in a training": f"{100 * kind.training:.0f}%",
                "smallest gain": "none" if kind.gain is None else f"{kind.gain} points",
            }
            for kind in found
        ],
        title=f"{criterion.name} on {counted(tasks, 'gate task')}"
        + (f", {gate.repeats} repeats" if gate.repeats > 1 else ""),
    )
    rates.notes += [
        "No gain can be promoted, not even if all tasks were solved."
        if least is None
        else f"A candidate must solve at least {counted(least, 'more task')} ({100 * least / tasks:.0f} points), with none lost.",
        f"False promotions: of candidates that change nothing; in a training: at least one, if all {epochs} change nothing.",
        f"Smallest gain: true gain that is promoted 4 times out of 5. Simulated; {basis}.",
    ]
    worst = None if any(kind.gain is None for kind in found) else max(kind.gain or 0 for kind in found)
    return Plan(
        total["episodes"], total["calls"], total["tokens"], total["money"], total["seconds"],
        least, worst, max(kind.false for kind in found), cost, rates,
    )  # fmt: skip


def _baseline(lab: Lab, gate: Panel) -> tuple[Sequence[Episode], str]:
    """The gate as the baseline was last seen on it, or half of it solved, and which of the two."""
    if lab.recorded:
        ids = {task.id for task in gate.tasks}
        for row in lab.runs.runs(split="gate", commit=lab.repo.baseline(), status="done"):
            episodes = [episode for episode in lab.load_run(row).scorable if episode.task_id in ids]
            if episodes:
                return episodes, f"the baseline solves as many as in run {row['id']}"
    made = [
        Episode(task.id, task.family, "", repeat, solved=place % 2 == 1)
        for place, task in enumerate(gate.tasks)
        for repeat in gate.numbers
    ]
    return made, "the baseline is taken to solve half of the tasks, since it was not measured on the gate yet"


def _cost(
    conditions: Conditions,
    design: Design,
    llm: MinimalBackbone,
    panels: tuple[Panel, Panel],
    epochs: int,
    estimator: object,
) -> Table:
    search, gate = panels
    model, workers = str(identity_of(llm)["model"]), conditions.measurer(llm).runner().workers
    lab = conditions.lab
    typical = typical_episode(lab.runs, model) if lab.recorded else None
    price = conditions.meter.price(model)
    steps = [("baseline on search", len(search) * epochs)]
    if rounds := rounds_of(design, len(search.tasks)):
        steps.append(("screening", rounds * epochs))
    steps += [("baseline on gate", len(gate) * epochs), ("candidates on gate", len(gate) * epochs)]
    rows: list[dict[str, Any]] = []
    for what, count in steps:
        known = cost_of(count, typical, price)
        if known["calls"] is None:
            known["calls"] = count * _budget(conditions)
        if known["seconds"] is not None:
            known["seconds"] = round(known["seconds"] / workers, 1)
        rows.append({"what": what, "episodes": count, **known})
    if own := proposer_cost(estimator, epochs):
        rows.append({"what": "proposer", "episodes": 0, **own})
    rows.append({"what": "all", **{name: _sum(row[name] for row in rows) for name in ("episodes", *COSTS)}})
    table = Table(rows, title=f"{counted(epochs, 'epoch')}, at most")
    table.notes.append(
        f"Based on {counted(int(typical['episodes']), 'stored episode')} of {model}; seconds with {counted(workers, 'worker')}."
        if typical
        else f"Calls: the step budget. Tokens, money and seconds are known once an episode of {model} is stored."
    )
    if typical and price is None:
        table.notes.append(f"{model} has no price; settings={{'prices': {{...}}}} sets one.")
    table.notes.append("A baseline that stays is measured on search once, and a recorded episode costs nothing.")
    return table


def _sum(values: Iterable[Any]) -> Any:
    """The sum; None where a part of it is not known."""
    known = list(values)
    return None if any(value is None for value in known) else round(sum(known), 4)


def rounds_of(design: Design, search: int) -> int:
    """Search episodes that an epoch's screening plays at most."""
    return min(search, design.tasks) * design.patience if isinstance(design, Screening) else 0


def preview(conditions: Conditions, design: Design, epochs: int, estimator: object = None) -> Table:
    """The cost of so many epochs alone: the search split, both sides of the gate, and all rounds of a screening, in one row; the
    proposer's own calls in another, where it has any."""
    search, gate = conditions.panel("search"), conditions.panel("gate")
    episodes = (len(search) + rounds_of(design, len(search.tasks)) + 2 * len(gate)) * epochs
    typical = typical_episode(conditions.lab.runs) if conditions.lab.recorded else None
    known = cost_of(episodes, typical, None)
    row = {
        "epochs": epochs,
        "episodes": episodes,
        "calls": known["calls"] if typical else episodes * _budget(conditions),
        "tokens": known["tokens"],
        "seconds": known["seconds"],
        "basis": f"{typical['episodes']} stored episodes"
        if typical
        else "the step budget, since nothing has been played yet",
    }
    rows = [row]
    if own := proposer_cost(estimator, epochs):
        shown = {name: own[name] for name in ("calls", "tokens", "seconds")}
        rows.append({"epochs": epochs, "episodes": 0, **shown, "basis": f"the proposer, {type(estimator).__name__}"})
    return Table(rows, title="at most")


def _budget(conditions: Conditions) -> int:
    return conditions.settings.budget or step_budget(conditions.lab.environment)
