"""A backbone in front of another one: the only place where a member of a backbone is passed on, or given its default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from harnesslab.errors import ConfigError
from harnesslab.llm.aside import ask
from harnesslab.llm.function import Ask, FromCallable
from harnesslab.llm.types import Backbone, Completion, MinimalBackbone, Request


class Wrapper(Backbone):
    """Behaves as the backbone behind it in every declared member; a subclass changes what it is for, as a rule ``complete``.

    What the backbone behind it does not declare has the default of :class:`~harnesslab.llm.types.Backbone`.
    """

    def __init__(self, backbone: MinimalBackbone):
        self._backbone = backbone

    @property
    def identity(self) -> Mapping[str, Any]:
        """The backbone's own: a wrapper changes no measurement."""
        return self._backbone.identity

    @property
    def constrains(self) -> bool:
        """As the backbone does."""
        return bool(getattr(self._backbone, "constrains", super().constrains))

    @property
    def control(self) -> bool:
        """As the backbone is."""
        return bool(getattr(self._backbone, "control", super().control))

    @property
    def concurrency(self) -> int:
        """The backbone's own."""
        return cast(int, getattr(self._backbone, "concurrency", super().concurrency))

    @property
    def served(self) -> Mapping[tuple[str, str], int]:
        """The backbone's own."""
        return cast("Mapping[tuple[str, str], int]", getattr(self._backbone, "served", super().served))

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        """The backbone's reply."""
        return await ask(self._backbone, request, repeat)

    def __repr__(self) -> str:
        return shown(self._backbone)


def shown(backbone: object) -> str:
    """How a backbone shows itself; the name of its class where that would be an address in memory."""
    return type(backbone).__name__ if type(backbone).__repr__ is object.__repr__ else f"{backbone!r}"


def as_backbone(backbone: MinimalBackbone | Ask) -> Backbone:
    """The backbone itself where its class is a :class:`Backbone`, else a wrapper that adds the defaults.

    A callable without ``complete`` is asked with the messages. Raises ConfigError for what is neither.
    """
    if not hasattr(type(backbone), "complete") and not hasattr(backbone, "complete"):
        if not callable(backbone):
            raise ConfigError(f"a backbone has complete(), or is a callable; {type(backbone).__name__} is neither")
        return FromCallable(backbone)
    # By its bases: isinstance would read members, and reading one may ask a server.
    return cast(Backbone, backbone) if Backbone in type(backbone).__mro__ else Wrapper(cast(MinimalBackbone, backbone))
