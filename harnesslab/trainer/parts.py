"""Checks of what a Trainer is made of, so that a wrong part is reported at once and not in the middle of a run."""

from __future__ import annotations

from typing import Any

from harnesslab.errors import ConfigError

_PARTS = {
    "lab": (("repo", "environment"), "a lab, as Lab.open(path, env=...) gives it"),
    "llm": (("complete", "identity"), "a backbone, such as LLM('name', base_url=...) or LLM.local('smollm2-135m')"),
    "estimator": (("propose",), "an estimator, such as MiningEstimator(), or the name of one"),
    "criterion": (("judge", "name"), "a criterion, such as StrictPareto()"),
    "optimizer": (("bind", "step"), "an optimizer, such as GreedyMonotonic()"),
}


def check_parts(**parts: Any) -> None:
    """Raise ConfigError for a part that is a class or lacks what its protocol asks for; ``None`` is left out."""
    for name, part in parts.items():
        wanted, what = _PARTS[name]
        if isinstance(part, type):
            raise ConfigError(f"{name} is the class {part.__name__}: make one, with {part.__name__}()")
        if part is None or (name == "estimator" and isinstance(part, str)):
            continue
        # The class is asked first: asking a prepared lab for its repository would make it.
        lacks = [attribute for attribute in wanted if not (hasattr(type(part), attribute) or hasattr(part, attribute))]
        if lacks:
            but = f", but has no {lacks[0]!r}" if len(lacks) < len(wanted) else ""
            raise ConfigError(f"{name} must be {what}, not {part!r:.60}{but}")
