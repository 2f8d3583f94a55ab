"""Estimators: where candidates come from."""

from __future__ import annotations

from harnesslab.trainer.estimators.base import Estimator, PastVerdict
from harnesslab.trainer.estimators.manual import ManualEstimator
from harnesslab.trainer.estimators.mining import MiningEstimator

__all__ = ["Estimator", "ManualEstimator", "MiningEstimator", "PastVerdict"]
