"""The suites of the agentdojo package, without the clients of models that its modules import on the way.

The modules of its suites import its agent pipeline, whose ``__init__`` imports the clients of five vendors. None of
that is needed to play and judge, so stand-ins take the place of those modules before the suites are imported.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from harnesslab.errors import EnvironmentUnavailable

BENCHMARK = "v1.2.2"
"""The newest version of the tasks in the package."""


@lru_cache(maxsize=1)
def suites() -> dict[str, Any]:
    """The four suites by name. Raises EnvironmentUnavailable where the package is not installed."""
    _stand_in()
    from agentdojo.default_suites.v1.tools import calendar_client
    from agentdojo.task_suite.load_suites import get_suites

    # It takes doublets out of an event's participants with a set, whose order changes with the hash seed.
    calendar_client.set = dict.fromkeys
    return dict(get_suites(BENCHMARK))


@lru_cache(maxsize=1)
def _stand_in() -> None:
    if "agentdojo.agent_pipeline" in sys.modules:
        return
    found = importlib.util.find_spec("agentdojo")
    if found is None or not found.submodule_search_locations:
        raise EnvironmentUnavailable("agentdojo is not installed. Get it with: harnesslab envs install agentdojo")
    folder = Path(found.submodule_search_locations[0]) / "agent_pipeline"
    # A package with its real folder, so that its light modules are still found, but without its __init__.
    _put("agentdojo.agent_pipeline", __path__=[str(folder)])
    _put("agentdojo.agent_pipeline.llms", __path__=[])
    _put("agentdojo.agent_pipeline.llms.google_llm", EMPTY_FUNCTION_NAME="<empty-function-name>")
    _put("agentdojo.logging", Logger=object)


def _put(name: str, **attributes: Any) -> None:
    module = ModuleType(name)
    module.__dict__.update(attributes)
    sys.modules[name] = module
