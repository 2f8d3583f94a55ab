"""A machine of its own for commands of an agent: bubblewrap over a copy-on-write view of this system.

What runs inside sees this machine's programs (``/usr``, ``/etc`` and the like), may change everything, and changes
nothing of the host: all writes go to memory that is bounded and vanishes with the machine. There is no network, no
host process, and nothing of the host's homes, mounts and data.
"""

from __future__ import annotations

from harnesslab_envs.sandbox.machine import Machine, missing, python_inside
from harnesslab_envs.sandbox.protocol import Confined, Done, Limits, MachineGone, shown

__all__ = ["Confined", "Done", "Limits", "Machine", "MachineGone", "missing", "python_inside", "shown"]
