"""Train the harness around a frozen LLM agent, one git commit at a time.

>>> import harnesslab as hl
>>> sorted(set(hl.__all__) & {"Lab", "Trainer", "MiningEstimator"})
['Lab', 'MiningEstimator', 'Trainer']

Names are imported on first use, so that ``import harnesslab`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harnesslab._version import __version__

if TYPE_CHECKING:
    from harnesslab import panels as panels
    from harnesslab.lab import Lab as Lab
    from harnesslab.llm import LLM as LLM
    from harnesslab.llm import Budget as Budget
    from harnesslab.llm import Cached as Cached
    from harnesslab.llm import Connection as Connection
    from harnesslab.llm import Meter as Meter
    from harnesslab.llm import Price as Price
    from harnesslab.llm import Recording as Recording
    from harnesslab.trainer.anytime import AnytimeTest as AnytimeTest
    from harnesslab.trainer.criterion import NetSolve as NetSolve
    from harnesslab.trainer.criterion import PairedTest as PairedTest
    from harnesslab.trainer.criterion import StrictPareto as StrictPareto
    from harnesslab.trainer.estimators.manual import ManualEstimator as ManualEstimator
    from harnesslab.trainer.estimators.mining import MiningEstimator as MiningEstimator
    from harnesslab.trainer.loss import Loss as Loss
    from harnesslab.trainer.optimizer import GreedyMonotonic as GreedyMonotonic
    from harnesslab.trainer.parameter import Parameter as Parameter
    from harnesslab.trainer.proposal import Proposal as Proposal
    from harnesslab.trainer.trainer import Trainer as Trainer
    from harnesslab.trainer.transfer import transfer as transfer

_HOME = {
    "LLM": "harnesslab.llm",
    "Recording": "harnesslab.llm",
    "Cached": "harnesslab.llm",
    "Connection": "harnesslab.llm",
    "Budget": "harnesslab.llm",
    "Meter": "harnesslab.llm",
    "Price": "harnesslab.llm",
    "Lab": "harnesslab.lab",
    "Trainer": "harnesslab.trainer.trainer",
    "Parameter": "harnesslab.trainer.parameter",
    "Loss": "harnesslab.trainer.loss",
    "Proposal": "harnesslab.trainer.proposal",
    "MiningEstimator": "harnesslab.trainer.estimators.mining",
    "ManualEstimator": "harnesslab.trainer.estimators.manual",
    "StrictPareto": "harnesslab.trainer.criterion",
    "NetSolve": "harnesslab.trainer.criterion",
    "PairedTest": "harnesslab.trainer.criterion",
    "AnytimeTest": "harnesslab.trainer.anytime",
    "GreedyMonotonic": "harnesslab.trainer.optimizer",
    "transfer": "harnesslab.trainer.transfer",
}

__all__ = ["__version__", "panels", *_HOME]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name == "panels":
        return import_module("harnesslab.panels")
    if name not in _HOME:
        raise AttributeError(f"module 'harnesslab' has no attribute {name!r}; it has {', '.join(sorted(__all__))}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lazy names too."""
    return sorted(__all__)


def load_ipython_extension(ipython: Any) -> None:
    """``%load_ext harnesslab``: the ``%%intervention`` cell magic."""
    from harnesslab.magics import register

    register(ipython)
