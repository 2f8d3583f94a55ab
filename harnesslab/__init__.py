"""Train the harness around a frozen LLM agent, one git commit at a time.

>>> import harnesslab as hl
>>> sorted(set(hl.__all__) & {"Lab", "Trainer", "MiningEstimator"})
['Lab', 'MiningEstimator', 'Trainer']

Names are imported on first use, so that ``import harnesslab`` stays quick.

Everything that an estimator, a criterion, an optimizer, a miner, an environment, a backbone or a callback needs is here;
what a kind of intervention needs is in :mod:`harnesslab.harness`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnesslab._version import __version__
from harnesslab.lazy import lazily

if TYPE_CHECKING:
    from harnesslab import errors as errors
    from harnesslab import harness as harness
    from harnesslab import panels as panels
    from harnesslab.bridges.environment import bridge as bridge
    from harnesslab.harness import Harness as Harness
    from harnesslab.lab import Lab as Lab
    from harnesslab.ledger import Flip as Flip
    from harnesslab.ledger import Verdict as Verdict
    from harnesslab.llm import LLM as LLM
    from harnesslab.llm import Backbone as Backbone
    from harnesslab.llm import Budget as Budget
    from harnesslab.llm import Cached as Cached
    from harnesslab.llm import Completion as Completion
    from harnesslab.llm import Connection as Connection
    from harnesslab.llm import Meter as Meter
    from harnesslab.llm import MinimalBackbone as MinimalBackbone
    from harnesslab.llm import Price as Price
    from harnesslab.llm import Recording as Recording
    from harnesslab.llm import Request as Request
    from harnesslab.llm import Wrapper as Wrapper
    from harnesslab.rollout.agent import Agent as Agent
    from harnesslab.rollout.agent import AgentRun as AgentRun
    from harnesslab.rollout.env import Environment as Environment
    from harnesslab.rollout.env import Policy as Policy
    from harnesslab.rollout.env import Split as Split
    from harnesslab.rollout.env import Task as Task
    from harnesslab.rollout.env import TextEnv as TextEnv
    from harnesslab.rollout.records import Episode as Episode
    from harnesslab.rollout.records import Run as Run
    from harnesslab.rollout.records import Step as Step
    from harnesslab.trainer.ablate import ablate as ablate
    from harnesslab.trainer.anytime import AnytimeTest as AnytimeTest
    from harnesslab.trainer.callbacks import Callback as Callback
    from harnesslab.trainer.callbacks import Training as Training
    from harnesslab.trainer.config import Settings as Settings
    from harnesslab.trainer.criterion import Criterion as Criterion
    from harnesslab.trainer.criterion import Judgement as Judgement
    from harnesslab.trainer.criterion import NetSolve as NetSolve
    from harnesslab.trainer.criterion import PairedTest as PairedTest
    from harnesslab.trainer.criterion import StrictPareto as StrictPareto
    from harnesslab.trainer.design import OneAtATime as OneAtATime
    from harnesslab.trainer.design import Screening as Screening
    from harnesslab.trainer.estimators.base import Estimator as Estimator
    from harnesslab.trainer.estimators.base import PastVerdict as PastVerdict
    from harnesslab.trainer.estimators.brief import Allowance as Allowance
    from harnesslab.trainer.estimators.brief import Brief as Brief
    from harnesslab.trainer.estimators.brief import Comment as Comment
    from harnesslab.trainer.estimators.brief import Costs as Costs
    from harnesslab.trainer.estimators.brief import Diagnoses as Diagnoses
    from harnesslab.trainer.estimators.brief import Remembers as Remembers
    from harnesslab.trainer.estimators.manual import ManualEstimator as ManualEstimator
    from harnesslab.trainer.estimators.mining import Clue as Clue
    from harnesslab.trainer.estimators.mining import Idea as Idea
    from harnesslab.trainer.estimators.mining import Miner as Miner
    from harnesslab.trainer.estimators.mining import MiningEstimator as MiningEstimator
    from harnesslab.trainer.estimators.mining import Variant as Variant
    from harnesslab.trainer.estimators.mining import View as View
    from harnesslab.trainer.estimators.queue import QueueEstimator as QueueEstimator
    from harnesslab.trainer.estimators.registry import estimators as estimators
    from harnesslab.trainer.failures import Cluster as Cluster
    from harnesslab.trainer.failures import Failure as Failure
    from harnesslab.trainer.failures import Failures as Failures
    from harnesslab.trainer.loss import Loss as Loss
    from harnesslab.trainer.optimizer import GreedyMonotonic as GreedyMonotonic
    from harnesslab.trainer.optimizer import Optimizer as Optimizer
    from harnesslab.trainer.pairs import Pair as Pair
    from harnesslab.trainer.parameter import Gradient as Gradient
    from harnesslab.trainer.parameter import Parameter as Parameter
    from harnesslab.trainer.proposal import Evidence as Evidence
    from harnesslab.trainer.proposal import Prediction as Prediction
    from harnesslab.trainer.proposal import Proposal as Proposal
    from harnesslab.trainer.proposal import Proposals as Proposals
    from harnesslab.trainer.trainer import Trainer as Trainer
    from harnesslab.trainer.transfer import transfer as transfer

_NAMES: dict[str, tuple[str, ...]] = {
    "lab": ("Lab",),
    "llm": (
        "Backbone",
        "Budget",
        "Cached",
        "Completion",
        "Connection",
        "LLM",
        "Meter",
        "MinimalBackbone",
        "Price",
        "Recording",
        "Request",
        "Wrapper",
    ),
    "bridges.environment": ("bridge",),
    "harness": ("Harness",),
    "ledger": ("Flip", "Verdict"),
    "rollout.agent": ("Agent", "AgentRun"),
    "rollout.env": ("Environment", "Policy", "Split", "Task", "TextEnv"),
    "rollout.records": ("Episode", "Run", "Step"),
    "trainer.ablate": ("ablate",),
    "trainer.anytime": ("AnytimeTest",),
    "trainer.callbacks": ("Callback", "Training"),
    "trainer.config": ("Settings",),
    "trainer.criterion": ("Criterion", "Judgement", "NetSolve", "PairedTest", "StrictPareto"),
    "trainer.design": ("OneAtATime", "Screening"),
    "trainer.estimators.base": ("Estimator", "PastVerdict"),
    "trainer.estimators.brief": ("Allowance", "Brief", "Comment", "Costs", "Diagnoses", "Remembers"),
    "trainer.estimators.manual": ("ManualEstimator",),
    "trainer.estimators.mining": ("Clue", "Idea", "Miner", "MiningEstimator", "Variant", "View"),
    "trainer.estimators.queue": ("QueueEstimator",),
    "trainer.estimators.registry": ("estimators",),
    "trainer.failures": ("Cluster", "Failure", "Failures"),
    "trainer.loss": ("Loss",),
    "trainer.optimizer": ("GreedyMonotonic", "Optimizer"),
    "trainer.pairs": ("Pair",),
    "trainer.parameter": ("Gradient", "Parameter"),
    "trainer.proposal": ("Evidence", "Prediction", "Proposal", "Proposals"),
    "trainer.trainer": ("Trainer",),
    "trainer.transfer": ("transfer",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("errors", "harness", "panels")

__all__ = ["__version__", *_MODULES, *_HOME]


__getattr__ = lazily("harnesslab", _NAMES, _MODULES)


def __dir__() -> list[str]:
    """Lazy names too."""
    return sorted(__all__)


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext harnesslab``: the ``%%intervention`` cell magic."""
    from harnesslab.magics import register

    register(ipython)
