"""Panels for notebooks: look at failures, at proposals, at a verdict, at the learning curve, and decide.

Each shows itself when it ends a cell, works from Python as well, and leaves a static view for readers without a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harnesslab.errors import ConfigError

if TYPE_CHECKING:
    from harnesslab.lab import Lab
    from harnesslab.panels.curve_view import CurvePanel
    from harnesslab.panels.failure_view import FailuresPanel
    from harnesslab.panels.intervention_view import InterventionsPanel
    from harnesslab.panels.verdict_view import VerdictPanel
    from harnesslab.rollout.records import Run
    from harnesslab.trainer.failures import Failures
    from harnesslab.trainer.loss import Loss
    from harnesslab.trainer.proposal import Proposals
    from harnesslab.trainer.trainer import Trainer

__all__ = ["curve", "failures", "interventions", "verdict"]


def failures(found: Failures) -> FailuresPanel:
    """What ``trainer.diagnose()`` found: causes, failed episodes, and every step of each."""
    from harnesslab.panels.failure_view import FailuresPanel

    return FailuresPanel(found)


def interventions(proposals: Proposals, trainer: Trainer | None = None) -> InterventionsPanel:
    """What ``trainer.propose()`` proposes, to read, edit, measure, accept or reject.

    ``trainer`` only for proposals that were put together by hand. Raises ConfigError when none is known.
    """
    from harnesslab.panels.intervention_view import InterventionsPanel

    return InterventionsPanel(
        proposals, _whose(trainer or getattr(proposals, "trainer", None), "interventions(proposals")
    )


def verdict(loss: Loss, trainer: Trainer | None = None) -> VerdictPanel:
    """What ``trainer.evaluate()`` found, to accept or reject. Raises ConfigError when no trainer is known."""
    from harnesslab.panels.verdict_view import VerdictPanel

    return VerdictPanel(loss, _whose(trainer or loss.trainer, "verdict(loss"))


def curve(source: Trainer | Lab, controls: Sequence[Run] = ()) -> CurvePanel:
    """The learning curve of a trainer or a lab; ``controls`` are runs of the random control, drawn beside it."""
    from harnesslab.lab import Lab
    from harnesslab.panels.curve_view import CurvePanel

    return CurvePanel(source if isinstance(source, Lab) else source.lab, controls)


def _whose(trainer: Trainer | None, call: str) -> Trainer:
    if trainer is None:
        raise ConfigError(f"it is not known which trainer is meant: hl.panels.{call}, trainer=trainer)")
    return trainer
