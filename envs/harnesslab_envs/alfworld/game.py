"""One game on TextWorld's PDDL engine, with ALFWorld's names for things."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

# TextWorld imports its Z-machine with it, which these games do not need, and which takes spaCy along.
if "textworld.envs.zmachine.jericho" not in sys.modules:
    _unused = types.ModuleType("textworld.envs.zmachine.jericho")
    _unused.JerichoEnv = None  # type: ignore[attr-defined]
    sys.modules[_unused.__name__] = _unused

from alfworld.agents.utils.misc import Demangler
from textworld.core import EnvInfos
from textworld.envs.pddl import PddlEnv
from textworld.envs.pddl import logic as pddl_logic


class Game(PddlEnv):
    """A loaded game; ``reset`` and ``step`` as in TextWorld.

    Never ask for ``policy_commands``: they are planned anew at each step.
    """

    def __init__(self, data: Mapping[str, Any]):
        super().__init__(EnvInfos(won=True, admissible_commands=True))
        self.load(data)
        demangler = Demangler(game_infos=self._entity_infos, shuffle=False)
        for thing in self._entity_infos.values():
            thing.name = demangler.demangle_alfred_name(thing.id)

    def reset(self) -> Any:
        """The first state. TextWorld translates the problem once more here; what loading made is taken instead."""
        fresh = self._pddl_state
        made = pddl_logic.PddlState
        pddl_logic.PddlState = lambda *_: fresh
        try:
            return super().reset()
        finally:
            pddl_logic.PddlState = made
