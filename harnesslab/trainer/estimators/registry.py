"""Estimators by name: the built-in ones, and those of installed packages.

A package makes its estimators known through the entry point group ``harnesslab.estimators``: name = what people type,
value = a class, or a function without arguments that returns an estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harnesslab.errors import ConfigError, EstimatorFault, HarnesslabError
from harnesslab.plugins import load_plugins
from harnesslab.trainer.estimators.base import Estimator
from harnesslab.trainer.estimators.manual import ManualEstimator
from harnesslab.trainer.estimators.mining import MiningEstimator
from harnesslab.trainer.estimators.queue import QueueEstimator

GROUP = "harnesslab.estimators"
"""Entry point group in which third parties register estimators."""

_BUILT_IN: dict[str, Callable[[], Estimator]] = {
    "manual": ManualEstimator,
    "mining": MiningEstimator,
    "queue": QueueEstimator,
}


def estimators() -> dict[str, Callable[[], Estimator]]:
    """What makes each known estimator, by name. One that cannot be loaded is left out with a warning (BrokenPlugin)."""
    return {**_BUILT_IN, **load_plugins(GROUP, _fault)}


def make_estimator(name: str) -> Estimator:
    """The estimator of that name. Raises ConfigError for a name that is not known, EstimatorFault where making it fails."""
    known = dict(_BUILT_IN) if name in _BUILT_IN else estimators()
    if name not in known:
        raise ConfigError(f"unknown estimator {name[:100]!r}; known are {', '.join(known)}")
    try:
        made: Any = known[name]()
    except HarnesslabError:
        raise
    except Exception as error:
        raise EstimatorFault(f"the estimator {name!r} could not be made: {type(error).__name__}: {error}") from error
    if not callable(getattr(made, "propose", None)):
        raise EstimatorFault(f"the estimator {name!r} is a {type(made).__name__} without a method 'propose'")
    return made


def _fault(name: str, loaded: Any) -> str:
    if name in _BUILT_IN:
        return f"{name!r} is the name of a built-in estimator"
    return "" if callable(loaded) else f"it is a {type(loaded).__name__}, not a class or a function"
