"""The base of every intervention: one small class per kind, with four optional hooks.

A kind overrides the hooks that it needs and leaves the rest. Each hook returns ``None`` when it
has nothing to say. Layers say *what an intervention is about*, hooks say *when it is asked*: a
regulation that forbids repeats narrows the choices (``shape``) as well as the action (``regulate``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

from harnesslab.harness.context import Context, Decision, Draft, Proposal

Layer: TypeAlias = Literal["contract", "skill", "action", "regulation"]
LAYERS: tuple[Layer, ...] = ("contract", "skill", "action", "regulation")


class Intervention:
    """One small reusable change in one layer. Immutable and without memory: all it knows is the Context."""

    kind: ClassVar[str] = ""
    layer: Layer
    name: str
    """Unique within a harness, ``layer/stem`` of its file; it is what counts as fired."""

    def shape(self, context: Context, draft: Draft) -> Draft | None:
        """Change the request before the model sees it."""
        return None

    def realize(self, context: Context, proposal: Proposal) -> Proposal | None:
        """Turn a reply, or the action read from it, into a better one."""
        return None

    def rank(self, context: Context, proposals: Sequence[Proposal]) -> Sequence[float] | None:
        """Score several proposals, one number each, higher is better; ties go to the first."""
        return None

    def regulate(self, context: Context, proposal: Proposal) -> Decision | None:
        """Look at the trajectory and nudge, force, withhold or stop."""
        return None
