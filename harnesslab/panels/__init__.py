"""Panels for notebooks: look at failures, at proposals, at a verdict, at the learning curve, at effects, and decide.

Each shows itself when it ends a cell, works from Python as well, and leaves a static view for readers without a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harnesslab.errors import ConfigError

if TYPE_CHECKING:
    from harnesslab.lab import Lab
    from harnesslab.panels.curve_view import CurvePanel
    from harnesslab.panels.effects_view import EffectsPanel
    from harnesslab.panels.failure_view import FailuresPanel
    from harnesslab.panels.intervention_view import InterventionsPanel
    from harnesslab.panels.verdict_view import VerdictPanel
    from harnesslab.rollout.records import Run
    from harnesslab.trainer.desk import Desk
    from harnesslab.trainer.failures import Failures
    from harnesslab.trainer.loss import Loss
    from harnesslab.trainer.proposal import Proposal, Proposals
    from harnesslab.trainer.trainer import Trainer

__all__ = ["curve", "effects", "failures", "interventions", "verdict"]


def failures(found: Failures) -> FailuresPanel:
    """What ``trainer.diagnose()`` found: causes, failed episodes, and every step of each."""
    from harnesslab.panels.failure_view import FailuresPanel
    from harnesslab.trainer.failures import Failures

    _is_one(found, Failures, "failures takes the result of trainer.diagnose()")
    return FailuresPanel(found)


def interventions(proposals: Proposals, trainer: Desk[Proposal, Loss] | None = None) -> InterventionsPanel:
    """What ``trainer.propose()`` proposes, to read, edit, measure, accept or reject.

    ``trainer`` only for proposals that were put together by hand. Raises ConfigError when none is known.
    """
    from harnesslab.panels.intervention_view import InterventionsPanel
    from harnesslab.trainer.proposal import Proposals

    _is_one(proposals, Proposals, "interventions takes the result of trainer.propose()")
    return InterventionsPanel(proposals, _whose(trainer or proposals.trainer, "interventions(proposals"))


def verdict(loss: Loss, trainer: Desk[Proposal, Loss] | None = None) -> VerdictPanel:
    """What ``trainer.evaluate()`` found, to accept or reject. Raises ConfigError when no trainer is known."""
    from harnesslab.panels.verdict_view import VerdictPanel
    from harnesslab.trainer.loss import Loss

    _is_one(loss, Loss, "verdict takes the loss of trainer.evaluate() or trainer.epochs()")
    return VerdictPanel(loss, _whose(trainer or loss.trainer, "verdict(loss"))


def curve(source: Trainer | Lab, controls: Sequence[Run] = ()) -> CurvePanel:
    """The learning curve of a trainer or a lab; ``controls`` are runs of the random control, drawn beside it."""
    from harnesslab.lab import Lab
    from harnesslab.panels.curve_view import CurvePanel

    lab: Any = getattr(source, "lab", source)
    _is_one(lab, Lab, "curve takes a trainer or a lab")
    return CurvePanel(lab, controls)


def effects(source: Trainer | Lab, backbone: str | None = None) -> EffectsPanel:
    """What each intervention of the baseline has done: :meth:`harnesslab.Lab.effects` with its forest plot."""
    from harnesslab.lab import Lab
    from harnesslab.panels.effects_view import EffectsPanel

    lab: Any = getattr(source, "lab", source)
    _is_one(lab, Lab, "effects takes a trainer or a lab")
    return EffectsPanel(lab, backbone)


def _is_one(value: Any, wanted: type, words: str) -> None:
    if not isinstance(value, wanted):
        raise ConfigError(f"hl.panels.{words}, not {value!r:.60}")


def _whose(trainer: Desk[Proposal, Loss] | None, call: str) -> Desk[Proposal, Loss]:
    if trainer is None:
        raise ConfigError(f"cannot tell which trainer this belongs to; use hl.panels.{call}, trainer=trainer)")
    return trainer
