"""The conditions of a training: all that its measurements have in common, for whoever else measures under them."""

from __future__ import annotations

import contextlib
from collections.abc import Set
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from harnesslab.errors import StoreError
from harnesslab.lab import Lab
from harnesslab.llm.meter import Meter, Price
from harnesslab.llm.types import MinimalBackbone
from harnesslab.rollout.env import Environment, Split, step_budget, tasks_of
from harnesslab.rollout.episode import Limits
from harnesslab.trainer.book import LabBook
from harnesslab.trainer.config import Settings
from harnesslab.trainer.looks import promotions
from harnesslab.trainer.measure import Measurer
from harnesslab.trainer.panel import Panel, check_ids, choose_panel

_PLACE, _KEY = -1, "settings"
"""Where the lab's records keep the settings of its last training; the journal's epochs count from 0."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """A lab with the settings, the meter, the executor and the forked tasks of one training."""

    lab: Lab
    settings: Settings
    meter: Meter
    executor: Executor | None = None
    forked: Set[str] = frozenset()

    @classmethod
    def remembered(cls, lab: Lab) -> Conditions:
        """Those of the lab's last training, in whichever kernel it was; the defaults where there was none."""
        try:
            settings = Settings.model_validate(lab.runs.journal_get(_PLACE, _KEY, {}))
        except ValidationError:  # another version wrote it
            settings = Settings()
        # No limit is given: the lab's book has the one that was set last.
        return cls(lab, settings, Meter(_prices(settings), book=LabBook(lab)))

    def remember(self) -> None:
        """Note the settings in the lab's records, for :meth:`remembered`."""
        settings = self.settings.model_dump(mode="json", exclude_unset=True)
        if self.lab.runs.journal_get(_PLACE, _KEY) != settings:
            self.lab.runs.journal_put(_PLACE, _KEY, settings)

    def panel(self, split: Split, environment: Environment | None = None, limit: int | None = None) -> Panel:
        """The tasks that are played of a split of the lab's environment, or of another one.

        ``limit``: so many tasks, in place of the settings'. ``families`` and ``leave_out`` name what the lab's environment has;
        in another one they count as far as it has the same. Raises ConfigError, EnvironmentUnavailable.
        """
        own = environment is None
        world = environment if environment is not None else self.lab.environment
        families = self.settings.families
        if own:
            check_ids(world, self.settings.leave_out)
        gone = {*self.settings.leave_out, *(self.forked if own else ())}
        tasks = [task for task in tasks_of(world, split) if task.id not in gone]
        if not own and families is not None:
            families = tuple({task.family for task in tasks} & set(families)) or None
        return choose_panel(
            tasks,
            split,
            limit=limit if limit is not None else self.settings.limit(split),
            families=families,
            repeats=self.settings.repeats,
            turn=promotions(self.lab) if own and split == "gate" and self.settings.fresh_gate else 0,
        )

    def measurer(self, llm: MinimalBackbone, environment: Environment | None = None) -> Measurer:
        """What plays panels under these conditions, with the lab's environment or another one."""
        world = environment if environment is not None else self.lab.environment
        return Measurer(
            self.lab,
            llm,
            budget=self.settings.budget or step_budget(world),
            workers=self.settings.workers,
            seed=self.settings.seed,
            spend=self.meter.spend,
            executor=self.executor,
            environment=environment,
            limits=Limits(self.settings.deadline, self.settings.reply_deadline, self.meter.begin, self.meter.release),
            tolerance=self.settings.tolerance,
            leave_out=self.settings.leave_out,
            keep=self._keep_usage,
        )

    def chosen(self) -> dict[str, Any]:
        """The settings that are part of a measurement's identity and differ from the default."""
        names = ("repeats", "budget", "seed", "families", "leave_out", "tolerance")
        found = {name: getattr(self.settings, name) for name in names}
        return {name: value for name, value in found.items() if value != Settings.model_fields[name].default}

    def _keep_usage(self) -> None:
        # Where a limit is set, each call was written already, and failing that is an error.
        with contextlib.suppress(StoreError):
            self.meter.save()


def make_meter(lab: Lab, settings: Settings) -> Meter:
    """The lab's meter, under the limits and with the prices of the settings."""
    return Meter(
        _prices(settings),
        max_calls=settings.max_calls,
        max_tokens=settings.max_tokens,
        max_seconds=settings.max_seconds,
        max_money=settings.max_money,
        book=LabBook(lab),
    )


def _prices(settings: Settings) -> dict[str, Price]:
    return {model: Price(*pair) for model, pair in settings.prices.items()}
