"""The base of every intervention: one small class per kind, with four optional hooks.

A kind overrides the hooks that it needs and leaves the rest. Each hook returns ``None`` when it
has nothing to say. Layers say *what an intervention is about*, hooks say *when it is asked*: a
regulation that forbids repeats narrows the choices (``shape``) as well as the action (``regulate``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from harnesslab.harness.context import Answer, Context, Decision, Draft, Proposal

Layer: TypeAlias = Literal["contract", "skill", "action", "regulation"]
LAYERS: tuple[Layer, ...] = ("contract", "skill", "action", "regulation")
HOOKS = ("shape", "realize", "rank", "regulate", "observe", "offer", "call")
"""Names of the hooks. In a step they are asked in the order offer, observe, shape, realize, rank, regulate, call."""


class Trigger(Protocol):
    """When an intervention is asked; :class:`~harnesslab.harness.kind.When` is the one that YAML files use."""

    def holds(self, context: Context) -> bool:
        """Whether the hooks are asked at this step."""
        ...

    def concerns(self, proposal: Proposal) -> bool:
        """Whether a hook that looks at an action is asked about this one."""
        ...


class Intervention:
    """One small reusable change in one layer. Immutable: all it knows, and all it remembers of an episode, is in the Context."""

    kind: ClassVar[str] = ""
    layer: Layer
    name: str
    """Unique within a harness, ``layer/stem`` of its file; it is what counts as fired."""
    about: str = ""
    """One sentence for people."""
    when: Trigger | None = None
    """The trigger; None means at every step."""
    stage: int = 50
    """Order of ``realize`` within the pipeline, low first (see :mod:`harnesslab.harness.pipeline`)."""
    remembers: bool = False
    """Whether its hooks use ``context.memory``, which costs a little."""
    constrained_only: bool = False
    """True where it makes no sense with a backbone that cannot enforce choices; it is then not asked."""

    hooks: Collection[str] = ()
    """Names of the hooks that it has; the others are never called. By default those that its class implements."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "hooks" not in cls.__dict__:
            cls.hooks = tuple(hook for hook in HOOKS if getattr(cls, hook) is not getattr(Intervention, hook))

    @classmethod
    def bind(cls, members: Sequence[Any]) -> None:
        """Called once when a harness is loaded, with all its interventions of this very class, in order."""

    def check(self) -> None:
        """Find out what reading its file does not show, before an episode is spent. Raises HarnessFileError."""

    def begin(self) -> Intervention:
        """What takes its place in one episode: itself, unless it keeps something for that time. Always followed by :meth:`end`."""
        return self

    def end(self) -> None:
        """Give back what :meth:`begin` took."""

    def observe(self, context: Context, observation: str) -> str | None:
        """Rewrite or annotate a new observation, once; from then on the agent has seen this text and no other."""
        return None

    def offer(self, context: Context, tools: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]] | None:
        """Change how the tools are described to the model, or add the harness's own, which :meth:`call` answers.

        ``tools`` are OpenAI function schemas. Where the environment takes text actions there are none, and only an
        intervention with a :meth:`call` is asked.
        """
        return None

    def call(self, context: Context, action: dict[str, Any]) -> Answer | None:
        """Answer a call of a tool that this intervention has added; the environment is not stepped."""
        return None

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
