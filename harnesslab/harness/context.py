"""What an intervention sees and what it may return: plain data, nothing of the environment.

A :class:`Context` holds what the agent has seen. No reward, no hidden state, no gold answer and
no task id can be reached from it. An intervention never acts; it returns new data, or ``None``
when it has nothing to say, which is how the pipeline knows whether it *fired*.

The life of one step: a :class:`Draft` is shaped into the request, the replies are parsed into
:class:`Proposal` objects, one is chosen, and a :class:`Decision` may still change what happens to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, Le, MaxLen

MAX_TEXT = 200_000
"""Characters that one text from an intervention may have."""
MAX_SAMPLES = 32
"""Replies that a draft may ask for."""
MAX_AGAIN = 3
"""How often the model may be asked again in one step, over all interventions."""
MAX_ACTIONS = 16
"""Actions that one call of a harness's own tool may stand for."""

# The bounds are checked where a value comes from outside: see harnesslab.harness.jsonform.
Text: TypeAlias = Annotated[str, MaxLen(MAX_TEXT)]
Texts: TypeAlias = Annotated[tuple[Text, ...], MaxLen(10_000)]

Action: TypeAlias = Text | dict[str, Any]
"""A line of text, or a tool call ``{"name": str, "arguments": dict}``."""

Protocol: TypeAlias = Literal["text", "json", "tools"]

CAUSES = ("form", "ambiguous", "truncated")
"""Why no action could be read: the reply missed the form, meant more than one action, or was cut off before it gave one."""


CUT = frozenset({"length", "content_filter", "interrupted"})
"""Reasons to finish (``Reply.finish_reason``) that leave a reply without its end."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One finished step as the agent lived it.

    ``result`` is the observation that came back. ``invalid`` is true when no action could be read
    from the reply, when an intervention withheld it, or when the environment did not understand it.
    ``fired`` names the interventions that fired in the step, so that each can count itself.
    """

    observation: Text
    raw: Text
    action: Action | None
    result: Text
    invalid: bool = False
    fired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What the agent has seen up to now. ``step`` counts from 0; ``budget`` is the number of steps allowed.

    ``system`` is the system message of an agent that owns its prompt; empty where the harness does.
    ``own_tools`` are tools of the harness's own where the environment takes text actions; elsewhere they are among ``tools``.
    ``asked`` is how often the model has been asked again in this step. ``memory`` belongs to the intervention that is asked,
    for one episode: what it leaves in there, small and plain JSON, is there at the next hook. A kind gets it if it ``remembers``.
    """

    instruction: Text
    observation: Text
    history: tuple[Turn, ...] = ()
    admissible: Texts | None = None
    tools: tuple[dict[str, Any], ...] | None = None
    step: int = 0
    budget: int = 50
    protocol: Protocol = "text"
    system: Text = ""
    own_tools: tuple[dict[str, Any], ...] | None = None
    asked: int = 0
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def steps_left(self) -> int:
        """Steps that remain, the present one included."""
        return self.budget - self.step

    def count_fired(self, name: str) -> int:
        """In how many past steps of this episode the intervention ``name`` fired."""
        return sum(name in turn.fired for turn in self.history)


@dataclass(frozen=True, slots=True)
class Draft:
    """The request while it is being shaped.

    ``system`` are the paragraphs of the system message. ``before`` and ``after`` are paragraphs around
    the observation in the last user message. ``choices``, when set, are the only actions that the model may
    give. ``samples`` replies are drawn, at ``temperature`` where it is set, else at the backbone's own.
    """

    system: Texts = ()
    before: Texts = ()
    after: Texts = ()
    history: Annotated[int, Ge(0)] = 4
    choices: Texts | None = None
    samples: Annotated[int, Ge(1), Le(MAX_SAMPLES)] = 1
    temperature: Annotated[float, Ge(0)] | None = None
    max_tokens: Annotated[int, Ge(1)] | None = None

    def add(self, *, system: str = "", before: str = "", after: str = "") -> Draft:
        """A copy with paragraphs appended; empty ones are ignored."""
        return replace(
            self,
            system=(*self.system, system) if system else self.system,
            before=(*self.before, before) if before else self.before,
            after=(*self.after, after) if after else self.after,
        )


@dataclass(frozen=True, slots=True)
class Proposal:
    """One reply on its way to becoming an action.

    ``action`` is ``None`` while none could be read; ``problem`` then says why, in words for the agent.
    ``withheld`` means that an action was read and must not be executed (a block); ``problem`` is its message.
    ``cause`` is ``problem`` for a program, one of :data:`CAUSES`. ``cut`` is true for a reply that was ended
    before the model ended it: by the token limit, a filter, a broken connection. ``again``, when set, asks the model again
    in the same step with this text below its reply, at most :data:`MAX_AGAIN` times; after that the action counts, if there is one.
    """

    raw: Text
    action: Action | None = None
    problem: Text = ""
    withheld: bool = False
    tool_calls: tuple[dict[str, Any], ...] = ()
    cut: bool = False
    cause: Text = ""
    again: Text = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool of the harness's own gives: a ``text`` for the agent, or ``actions`` that are executed in its place, one a step."""

    text: Text = ""
    actions: Annotated[tuple[Action, ...], MaxLen(MAX_ACTIONS)] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What regulation wants done with the chosen proposal.

    ``note`` is told to the agent with the next observation. ``action`` replaces the chosen one.
    ``withhold`` spends the step without the environment; the note is then the observation.
    ``stop`` ends the episode; the environment is not stepped again. ``again`` asks the model again in the same step, as in
    a :class:`Proposal`. A note alone withholds nothing: the action is executed.
    """

    note: Text = ""
    action: Action | None = None
    withhold: bool = False
    stop: bool = False
    again: Text = ""


@dataclass(slots=True)
class Firings:
    """Collects, for one step, which interventions fired and which failed."""

    fired: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Note that ``name`` fired; once a step is enough."""
        if name not in self.fired:
            self.fired.append(name)
