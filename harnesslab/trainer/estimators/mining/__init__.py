"""The MiningEstimator: from the patterns in failed episodes to built-in kinds."""

from __future__ import annotations

from harnesslab.trainer.estimators.mining.estimator import MiningEstimator
from harnesslab.trainer.estimators.mining.idea import Clue, Idea, Miner, Variant
from harnesslab.trainer.estimators.mining.view import View

__all__ = ["Clue", "Idea", "Miner", "MiningEstimator", "Variant", "View"]
