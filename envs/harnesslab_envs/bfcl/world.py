"""The APIs of one episode: objects of the package, called directly.

The package runs calls by ``eval`` on the text that a model wrote. Here a call is a name from the list of tools and
JSON values; nothing that an agent writes is ever evaluated. What a call answers is put in words as the package does it.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
from collections.abc import Mapping
from typing import Any

from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING, STATELESS_CLASSES

from harnesslab_envs.bfcl.records import Call, Record


class World:
    """The objects behind a task's APIs, in their initial state."""

    def __init__(self, record: Record):
        self.apis: dict[str, Any] = {name: _made(name, record) for name in record.apis}

    def signature(self, name: str) -> inspect.Signature:
        """The parameters of a function."""
        return inspect.signature(self._method(name))

    def call(self, call: Call) -> str:
        """Do a call. Never raises for what the call does; a failure is the answer."""
        method = self._method(call.name)
        try:
            # Copies: an API may keep what it is given, and change it later.
            result = method(*copy.deepcopy(call.args), **copy.deepcopy(dict(call.kwargs)))
        except Exception as error:  # noqa: BLE001 - the package's functions may raise anything on odd arguments
            return f"Error during execution: {error}"
        return _words(result)

    def _method(self, name: str) -> Any:
        # As in the package: where two APIs have a function of the same name, the later one counts.
        return next(getattr(api, name) for api in reversed(list(self.apis.values())) if hasattr(api, name))


def _made(name: str, record: Record) -> Any:
    api = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name)()
    if name not in STATELESS_CLASSES:
        config: Mapping[str, Any] = record.config.get(name, {})
        api._load_scenario(copy.deepcopy(config), long_context=record.long_context)
    return api


def _words(result: Any) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        try:
            return json.dumps(result)
        except (TypeError, ValueError):
            return str(result)
    return str(result)
