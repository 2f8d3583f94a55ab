"""One game on TextWorld's PDDL engine, with ALFWorld's names for things."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# TextWorld imports its Z-machine with it, which these games do not need, and which takes spaCy along.
if "textworld.envs.zmachine.jericho" not in sys.modules:
    _unused = types.ModuleType("textworld.envs.zmachine.jericho")
    _unused.JerichoEnv = None  # type: ignore[attr-defined]
    sys.modules[_unused.__name__] = _unused

import fast_downward
from alfworld.agents.utils.misc import Demangler
from textworld.core import EnvInfos
from textworld.envs.pddl import PddlEnv
from textworld.envs.pddl import logic as pddl_logic

_FREE: list[Any] = []
"""Copies of Fast Downward that no game uses. Each holds the state of one game, and none can be unloaded: TextWorld, which
loads one for each game, grows by some megabytes an episode."""


class Game(PddlEnv):
    """A loaded game; ``reset`` and ``step`` as in TextWorld. ``close`` it when done, so that others use its library.

    Never ask for ``policy_commands``: they need the plan that is left out here.
    """

    downward_lib: Any

    def __init__(self, data: Mapping[str, Any]):
        load = fast_downward.load_lib
        with _put(fast_downward, "load_lib", lambda: _FREE.pop() if _FREE else load()):
            super().__init__(EnvInfos(won=True, admissible_commands=True))
        # The second translation of each problem, which takes about as long as the first, is for plans only.
        self.downward_lib.load_sas_replan = lambda _sas: None
        with _put(fast_downward, "pddl2sas", _without_plans(fast_downward.pddl2sas)):
            self.load(data)
        demangler = Demangler(game_infos=self._entity_infos, shuffle=False)
        for thing in self._entity_infos.values():
            thing.name = demangler.demangle_alfred_name(thing.id)

    def reset(self) -> Any:
        """The first state. TextWorld translates the problem once more here; what loading made is taken instead."""
        fresh = self._pddl_state
        with _put(pddl_logic, "PddlState", lambda *_: fresh):
            return super().reset()

    def close(self) -> None:
        """Give the library back, empty. Safe to call twice."""
        library, self.downward_lib = self.downward_lib, None
        if library is not None:
            library.cleanup()
            _FREE.append(library)


def _without_plans(translate: Callable[..., Any]) -> Callable[..., Any]:
    def once(*arguments: Any, optimize: bool = False, **options: Any) -> Any:
        return (None, "") if optimize else translate(*arguments, **options)

    return once


@contextmanager
def _put(module: types.ModuleType, name: str, value: Any) -> Iterator[None]:
    """Another value for a name of a module, for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)
