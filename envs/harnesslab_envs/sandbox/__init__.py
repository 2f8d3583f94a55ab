"""A machine of its own for commands of an agent.

:class:`Machine` is bubblewrap over a copy-on-write view of this system. What runs inside sees this machine's programs
(``/usr``, ``/etc`` and the like), may change everything, and changes nothing of the host: all writes go to memory that
is bounded and vanishes with the machine. There is no network, no host process, and nothing of the host's homes, mounts
and data.

:class:`Container` is a container of an image, on Docker or Podman. Both are :class:`Confined`.
"""

from __future__ import annotations

from harnesslab_envs.sandbox.container import Container
from harnesslab_envs.sandbox.engine import Engine, EngineError, find_engine
from harnesslab_envs.sandbox.machine import Machine, missing, module_place, python_inside, usable
from harnesslab_envs.sandbox.protocol import Confined, Done, Limits, MachineGone, shown

__all__ = [
    "Confined",
    "Container",
    "Done",
    "Engine",
    "EngineError",
    "Limits",
    "Machine",
    "MachineGone",
    "find_engine",
    "missing",
    "module_place",
    "python_inside",
    "shown",
    "usable",
]
