"""Which controls are played beside a result: their names, what each is, and what it costs at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harnesslab.analysis.table import Table
from harnesslab.errors import ConfigError
from harnesslab.llm.control import FirstControl, OverlapControl, RandomControl
from harnesslab.llm.types import Completion, MinimalBackbone, Request
from harnesslab.llm.wrapper import Wrapper
from harnesslab.plaintext import counted
from harnesslab.rollout.deaf import Deaf
from harnesslab.rollout.identity import identity_of, is_greedy
from harnesslab.rollout.records import Run
from harnesslab.trainer.conditions import Conditions
from harnesslab.trainer.parts import check_parts
from harnesslab.trainer.typical import cost_of, typical_episode

SAMPLING = "sampling"
CONTROLS: Mapping[str, str] = {
    "random": "picks at random among the replies that the harness leaves",
    "first": "always takes the first reply that is left",
    "overlap": "takes the reply that shares most words with the task, without repeating itself",
    "deaf": "the model itself, told another task's instruction",
    SAMPLING: "the model with the first harness, as many attempts as the tokens of the present harness buy",
}
"""Every control by its name."""
SEEDS = 3
"""How many seeds the controls that draw are played with."""
MOST_SAMPLES = 16
"""Attempts at a task that sampling makes at most."""
TEMPERATURE = 1.0
"""At which a model that decodes greedily is sampled."""

Controls = str | Sequence[str | MinimalBackbone] | None
"""``"all"``, names of :data:`CONTROLS`, backbones, or None for the random control with one seed."""


@dataclass(frozen=True, slots=True)
class Control:
    """One row of controls: the backbones that are played, one a seed; none for sampling, which plays the first harness."""

    name: str
    backbones: tuple[MinimalBackbone, ...]

    @property
    def free(self) -> bool:
        """Whether it calls no model."""
        return bool(self.backbones) and all(getattr(backbone, "control", False) for backbone in self.backbones)


def chosen(controls: Controls, llm: MinimalBackbone, seeds: int | None) -> list[Control]:
    """What is to be played. Raises ConfigError for an unknown name, anything that is not a backbone, and a wrong number of seeds."""
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise ConfigError(f"seeds={seeds!r:.40} must be a whole number of at least 1")
    wanted: Any = ("random",) if controls is None else (controls,) if isinstance(controls, str) else controls
    if wanted == ("all",):
        wanted = tuple(CONTROLS)
    if isinstance(wanted, bytes) or not isinstance(wanted, Sequence):
        raise ConfigError(f"controls takes a list of names or backbones, not {type(wanted).__name__}: {_names()}")
    numbers = range(seeds if seeds is not None else 1 if controls is None else SEEDS)
    once = [item for place, item in enumerate(wanted) if not isinstance(item, str) or item not in wanted[:place]]
    return [_one(item, llm, numbers) for item in once]


def _one(item: Any, llm: MinimalBackbone, seeds: Iterable[int]) -> Control:
    if not isinstance(item, str):
        if item is None:
            raise ConfigError(f"controls holds None: {_names()}, or a backbone")
        check_parts(llm=item)
        return Control(str(identity_of(item)["model"]), (item,))
    if item not in CONTROLS:
        raise ConfigError(f"there is no control {item!r:.60}; {_names()}, or 'all'")
    if item in ("random", "deaf"):
        return Control(item, tuple(RandomControl(seed) if item == "random" else Deaf(llm, seed) for seed in seeds))
    rules: dict[str, tuple[MinimalBackbone, ...]] = {"first": (FirstControl(),), "overlap": (OverlapControl(),)}
    return Control(item, rules.get(item, ()))


def _names() -> str:
    return f"the controls are {', '.join(CONTROLS)}"


class Sampled(Wrapper):
    """A backbone for several attempts at one task: a greedy one is asked at :data:`TEMPERATURE`."""

    def __init__(self, backbone: MinimalBackbone):
        super().__init__(backbone)
        self._temperature = TEMPERATURE if is_greedy(backbone) else None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The backbone's, with the temperature where it is another one."""
        own = self._backbone.identity
        return own if self._temperature is None else {**own, "sampled": self._temperature}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """The backbone's reply."""
        if self._temperature is not None and request.temperature is None:
            request = replace(request, temperature=self._temperature)
        return await super().complete(request, repeat=repeat)


def attempts(start: Run, trained: Run) -> int:
    """How many attempts with the first harness the tokens of one with the present harness buy, at least 1.

    Where no tokens are reported, calls count in their place.
    """
    price, money = _spent(start), _spent(trained)
    if not price or not money:
        price, money = _steps(start), _steps(trained)
    return max(1, min(MOST_SAMPLES, int(money / price + 1e-9))) if price else 1


def _spent(run: Run) -> float:
    return sum(e.prompt_tokens + e.completion_tokens for e in run.scorable) / max(1, len(run.scorable))


def _steps(run: Run) -> float:
    return sum(e.length for e in run.scorable) / max(1, len(run.scorable))


def pooled(runs: Sequence[Run]) -> Run:
    """The runs of one control with several seeds as one, so that a task with several seeds is one cluster."""
    first = runs[0]
    return Run(
        ", ".join(run.id for run in runs), first.commit, first.split, first.identity,
        [episode for run in runs for episode in run], first.purpose, first.backbone, first.served,
    )  # fmt: skip


def cost(conditions: Conditions, llm: MinimalBackbone, controls: Sequence[Control], episodes: int, runs: int) -> Table:
    """What opening the sealed split costs at most: ``runs`` of the model with ``episodes`` each, and the controls.

    Calls, tokens, money and seconds are estimated from stored episodes of this backbone; None where there are none.
    """
    model = str(identity_of(llm)["model"])
    typical = typical_episode(conditions.lab.runs, model) if conditions.lab.recorded else None
    price = conditions.meter.price(model)

    def row(what: str, count: int, free: bool = False) -> dict[str, Any]:
        known = cost_of(count, typical, price)
        return {"what": what, "episodes": count, **(dict.fromkeys(known, 0) if free else known)}

    rows = [row(f"{model}, first and present harness" if runs > 1 else model, runs * episodes)]
    for control in controls:
        times = len(control.backbones) or MOST_SAMPLES
        seeds = f", {counted(times, 'seed')}" if times > 1 else ""
        said = f"up to {MOST_SAMPLES} attempts a task" if not control.backbones else CONTROLS.get(control.name, "")
        rows.append(row(f"{control.name}{seeds}: {said}" if said else control.name, times * episodes, control.free))
    names = ("episodes", "calls", "tokens", "money", "seconds")
    total = {name: None if any(r[name] is None for r in rows) else sum(r[name] for r in rows) for name in names}
    rows.append({"what": "all", **total})
    for r in rows:
        r.update({name: round(r[name]) for name in ("calls", "tokens", "seconds") if r[name] is not None})
        r["money"] = r["money"] if r["money"] is None else round(r["money"], 4)
    table = Table(rows, title="opening the sealed split, at most", columns=["what", *names])
    if typical is None:
        table.notes.append(f"Calls, tokens, money and seconds are known once an episode of {model} is stored.")
    elif price is None:
        table.notes.append(f"{model} has no price; settings={{'prices': {{...}}}} sets one.")
    return table
