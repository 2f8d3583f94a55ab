"""What the kinds that are written in YAML have in common: parameters, a trigger, a registry.

A kind is a class with four class attributes (``kind``, ``layers``, ``stage``, ``Params``) and some of the
hooks of :class:`~harnesslab.harness.base.Intervention`::

    @register
    class Shout(Kind[ShoutParams]):
        kind = "shout"
        layers = ("contract",)
        Params = ShoutParams

        def shape(self, context, draft):
            return draft.add(after=self.params.text.upper())

A package of yours makes its kinds known through the entry point group ``harnesslab.kinds``, name = kind,
value = class.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from harnesslab.harness.base import Intervention, Layer
from harnesslab.harness.context import Context, Proposal
from harnesslab.harness.regexes import Regex
from harnesslab.plugins import load_plugins

GROUP = "harnesslab.kinds"
"""Entry point group in which third parties register kinds."""


class Params(BaseModel):
    """Base of every kind's parameters: unknown keys are errors, types are strict, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class When(Params):
    """The trigger of an intervention. Every condition that is set must hold; none set means always."""

    instruction: Regex | None = Field(default=None, description="found in the task's instruction")
    observation: Regex | None = Field(default=None, description="found in the current observation")
    last_invalid: bool | None = Field(
        default=None, description="whether the last step was invalid; false on the first step"
    )
    system: Regex | None = Field(
        default=None,
        description="found in the system message of an agent that owns its prompt (a bridge); false elsewhere",
    )
    min_step: int | None = Field(default=None, ge=0, description="the step number, from 0, is at least this")
    max_steps_left: int | None = Field(
        default=None, ge=1, description="at most this many steps are left, including this one"
    )
    tool: str | None = Field(
        default=None, description="this tool is offered; for hooks on an action: the action calls it"
    )

    def holds(self, context: Context) -> bool:
        """Whether the conditions on the context hold, cheapest first."""
        if self.min_step is not None and context.step < self.min_step:
            return False
        if self.max_steps_left is not None and context.steps_left > self.max_steps_left:
            return False
        if self.last_invalid is not None:
            last = context.history[-1].invalid if context.history else False
            if last != self.last_invalid:
                return False
        if self.tool is not None and self.tool not in tool_names(context.tools):
            return False
        if self.system is not None and not self.system.search(context.system):
            return False
        if self.instruction is not None and not self.instruction.search(context.instruction):
            return False
        return self.observation is None or self.observation.search(context.observation) is not None

    def concerns(self, proposal: Proposal) -> bool:
        """Whether a hook that looks at an action is asked: an action that is not read yet concerns everyone."""
        if self.tool is None or proposal.action is None:
            return True
        return isinstance(proposal.action, dict) and proposal.action.get("name") == self.tool


def tool_names(tools: Sequence[dict[str, Any]] | None) -> tuple[str, ...]:
    """Names in OpenAI function schemas."""
    return tuple(str(tool.get("function", {}).get("name", "")) for tool in tools or ())


P = TypeVar("P", bound=Params)


class Kind(Intervention, Generic[P]):
    """An intervention made from a YAML file. Subclasses say what they do in their docstring: it is the reference."""

    layers: ClassVar[tuple[Layer, ...]] = ()
    """Layer folders in which the kind may lie."""
    example: ClassVar[str] = ""
    """A complete file, for the reference."""
    Params: ClassVar[type[Params]]
    when: When | None

    def __init__(self, name: str, params: P, *, about: str = "", when: When | None = None) -> None:
        self.name = name
        self.layer = name.split("/", 1)[0]  # type: ignore[assignment]
        self.params = params
        self.about = about
        self.when = when

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


_KINDS: dict[str, type[Kind[Any]]] = {}
_loaded = False

K = TypeVar("K", bound=type[Kind[Any]])


def register(cls: K) -> K:
    """Class decorator: make a kind known under its name. Raises ValueError where the name is taken."""
    known = _KINDS.get(cls.kind)
    if known is not None and known.__qualname__ != cls.__qualname__:
        raise ValueError(f"kind '{cls.kind}' is already taken by {known.__module__}.{known.__qualname__}")
    if not cls.kind or not cls.layers:
        raise ValueError(f"{cls.__qualname__} needs a kind and at least one layer")
    _KINDS[cls.kind] = cls
    return cls


def known_kinds() -> dict[str, type[Kind[Any]]]:
    """Every known kind by name: the built-in ones, then those of entry points. Imported on the first call.

    A third party's kind that cannot be imported, or whose name is taken, is left out with a warning.
    """
    global _loaded
    if not _loaded:
        import harnesslab.harness.kinds as builtin

        for module in pkgutil.iter_modules(builtin.__path__):
            importlib.import_module(f"{builtin.__name__}.{module.name}")
        _loaded = True
        load_plugins(GROUP, _register)
    return dict(_KINDS)


def find_kind(name: str) -> type[Kind[Any]] | None:
    """The kind of this name; None where there is none. A built-in one is imported alone, others need :func:`known_kinds`."""
    if not _loaded and name.isidentifier() and name not in _KINDS:
        module = f"harnesslab.harness.kinds.{name}"
        if importlib.util.find_spec(module) is not None:  # a built-in kind has the name of its module
            importlib.import_module(module)
    return _KINDS.get(name) or known_kinds().get(name)


def brought_by(kind: str) -> str:
    """What brings a kind that is not built in: ``the environment 'x'``, or ``the package 'y'``; empty for no entry point."""
    point = next(iter(importlib.metadata.entry_points(group=GROUP, name=kind)), None)
    if point is None:
        return ""
    for environment in importlib.metadata.entry_points(group="harnesslab.envs"):
        if point.module.startswith(f"{environment.module}."):
            return f"the environment '{environment.name}'"
    return f"the package '{point.dist.name if point.dist else point.module}'"


def _register(name: str, loaded: Any) -> str:
    """Register what an entry point named; why not, where that cannot be done."""
    if not (isinstance(loaded, type) and issubclass(loaded, Kind)):
        return "it is not a class derived from harnesslab.harness.Kind"
    if not (isinstance(getattr(loaded, "Params", None), type) and issubclass(loaded.Params, Params)):
        return "its Params is not a class derived from harnesslab.harness.Params"
    try:
        register(loaded)
    except ValueError as error:
        return str(error)
    return ""
