"""One step of an episode, the part that belongs to the harness.

:meth:`Pipeline.see` settles what the agent sees: the tools, then the observation. :meth:`Pipeline.begin` shapes the request: contract, skill, action and regulation in this order, by file name in
each layer. :meth:`Pipeline.choose` turns the replies into one action: each reply is parsed and goes through the
``realize`` hooks by stage,

====================  =====  ==========================================================================
rescue                   10  find an action in a reply that has none
rewrite                  20  known mistakes, each with its own pattern
snap                     40  what is still not possible becomes the nearest thing that is
(kinds of your own)      50  also Python files
block                    90  last, because it judges what would really be executed
====================  =====  ==========================================================================

and within a stage by layer and file name. Several proposals are ranked, the scores of all rankers added; one that can
be executed always beats one that cannot. Then regulation sees the chosen one, in order, until one of them withholds
or stops.

A pipeline holds no state of an episode: one serves any number of them at once. :meth:`Pipeline.episode` makes one for
a single episode, in which a Python intervention keeps its confined process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn, Protocol

from harnesslab.errors import ConfinementUnavailable, InterventionFault
from harnesslab.harness.base import Intervention
from harnesslab.harness.context import CUT, MAX_SAMPLES, Action, Answer, Context, Decision, Draft, Firings, Proposal
from harnesslab.harness.jsonform import scores_from_json, text_from_json, tools_from_json
from harnesslab.harness.load import Harness
from harnesslab.harness.memory import Memory
from harnesslab.harness.prompt import Message, build_messages, describe_own
from harnesslab.harness.protocol import parse, render
from harnesslab.harness.toolschema import name_of


class Reply(Protocol):
    """What the pipeline needs of a completion."""

    @property
    def text(self) -> str:
        """The text of the reply."""

    @property
    def tool_calls(self) -> Sequence[dict[str, Any]]:
        """Its tool calls: ``{"id", "name", "arguments"}``, or OpenAI's nested form."""

    @property
    def finish_reason(self) -> str:
        """Why it ended; for those of :data:`~harnesslab.harness.context.CUT`, the model had not finished."""


class Perceived(NamedTuple):
    """What the agent sees: a context with the observation and the tools as the harness left them.

    ``own`` says which intervention answers which tool of the harness's own.
    """

    context: Context
    own: Mapping[str, str]
    fired: tuple[str, ...]


class Prepared(NamedTuple):
    """A shaped request.

    ``choices`` are complete replies, one of which the backbone must give; None where it is free or cannot be held
    to them. ``options`` are the complete replies that a control may pick from: the choices, else whatever is
    admissible. ``tools`` are to be sent with the request in the ``tools`` protocol.
    """

    draft: Draft
    messages: tuple[Message, ...]
    choices: tuple[str, ...] | None
    options: tuple[str, ...]
    tools: tuple[dict[str, Any], ...] | None
    fired: tuple[str, ...]


class Chosen(NamedTuple):
    """The proposal that counts, what regulation wants done with it, and which interventions fired on any reply."""

    proposal: Proposal
    decision: Decision | None
    fired: tuple[str, ...]

    @property
    def again(self) -> str:
        """The text with which the model is to be asked again in this step; empty where it is not."""
        if self.decision is not None and (self.decision.stop or self.decision.withhold):
            return ""
        return (self.decision.again if self.decision is not None else "") or self.proposal.again


class Pipeline:
    """The harness at work. Both methods raise InterventionFault, naming the intervention, when a hook fails."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.memory: Memory | None = None
        everyone = harness.interventions
        self._observers = [i for i in everyone if "observe" in i.hooks]
        self._offerers = [i for i in everyone if "offer" in i.hooks]
        self._shapers = [i for i in everyone if "shape" in i.hooks]
        self._free_shapers = [i for i in self._shapers if not i.constrained_only]
        self._realizers = sorted([i for i in everyone if "realize" in i.hooks], key=lambda i: i.stage)
        self._rankers = [i for i in everyone if "rank" in i.hooks]
        self._regulators = [i for i in everyone if "regulate" in i.hooks]
        self._start = Draft(history=harness.prompt.history)

    def episode(self) -> Pipeline:
        """The pipeline for one episode: with a memory, and with processes where interventions need them; ``close`` it at the end."""
        begun = tuple(intervention.begin() for intervention in self.harness.interventions)
        same = all(one is other for one, other in zip(begun, self.harness.interventions, strict=True))
        own = Pipeline(self.harness if same else replace(self.harness, interventions=begun))
        own.memory = Memory()
        return own

    def close(self) -> None:
        """End what :meth:`episode` has begun. Safe to call twice."""
        for intervention in self.harness.interventions:
            intervention.end()

    def see(self, context: Context) -> Perceived:
        """Settle the tools and the observation of one step. Asked once a step, before :meth:`begin`."""
        firings = Firings()
        own: dict[str, str] = {}
        field = "own_tools" if context.tools is None else "tools"
        for intervention in self._offerers:
            if context.tools is None and "call" not in intervention.hooks:
                continue
            if not self._asked(intervention, context):
                continue
            tools = getattr(context, field) or ()
            offered = self._run(intervention, "offer", context, tools)
            if offered is None:
                continue
            offered = _checked(intervention, "offer", tools_from_json, offered)
            known = {name_of(tool) for tool in tools}
            new = [name_of(tool) for tool in offered if name_of(tool) not in known]
            if new and "call" not in intervention.hooks:
                error = ValueError(f"added the tool {new[0]!r}, but has no hook 'call' to answer it")
                _blame(intervention, "offer", error, "nonsense")
            own.update(dict.fromkeys(new, intervention.name))
            context = replace(context, **{field: offered})
            firings.add(intervention.name)
        for intervention in self._observers:
            if not self._asked(intervention, context):
                continue
            text = self._run(intervention, "observe", context, context.observation)
            if text is None:
                continue
            context = replace(context, observation=_checked(intervention, "observe", text_from_json, text))
            firings.add(intervention.name)
        return Perceived(context, own, tuple(firings.fired))

    def answer(self, perceived: Perceived, action: Action) -> Answer | None:
        """What a tool of the harness's own gives; None where the action is the environment's."""
        if not isinstance(action, dict) or action.get("name") not in perceived.own:
            return None
        intervention = self.harness[perceived.own[action["name"]]]
        answer = self._run(intervention, "call", perceived.context, action)
        answer = _typed(intervention, "call", answer if answer is not None else Answer(), Answer)
        for each in answer.actions:
            if isinstance(each, dict) and each.get("name") in perceived.own:
                error = ValueError(
                    f"stands for {each['name']!r}, which is the harness's own; name actions of the environment"
                )
                _blame(intervention, "call", error, "nonsense")
        return answer

    def follow(self, context: Context, action: Action) -> Chosen:
        """An action that one of the harness's own tools stands for, as regulation leaves it."""
        firings = Firings()
        proposal = Proposal("", action)
        decision = self._regulated(context, proposal, firings) if self._regulators else None
        return Chosen(proposal, decision, tuple(firings.fired))

    def begin(self, context: Context, constrains: bool = False) -> Prepared:
        """Shape the request of one step. ``constrains``: the backbone can be held to a list of replies."""
        draft, firings = self._start, Firings()
        for intervention in self._shapers if constrains else self._free_shapers:
            if not self._asked(intervention, context):
                continue
            shaped = self._run(intervention, "shape", context, draft)
            if shaped is not None:
                draft = _checked_draft(intervention, shaped)
                firings.add(intervention.name)
        if draft.choices is not None:
            draft = _settled(draft, constrains)
        if context.own_tools and context.protocol != "tools":
            draft = draft.add(system=describe_own(context.own_tools, context.protocol))
        messages = build_messages(context, draft, self.harness.prompt)
        choices = _rendered(draft.choices, context)
        options = choices if choices is not None else _rendered(context.admissible, context) or ()
        tools = (context.tools or context.own_tools) if context.protocol == "tools" else None
        return Prepared(draft, messages, choices, options, tools, tuple(firings.fired))

    def choose(self, context: Context, replies: Sequence[Reply]) -> Chosen:
        """From one reply or more to the proposal that counts. Raises ValueError without a reply."""
        if not replies:
            raise ValueError("choose needs at least one reply")
        firings = Firings()
        realizers = [i for i in self._realizers if self._asked(i, context)]
        proposals = [self._realized(context, reply, realizers, firings) for reply in replies]
        proposal = proposals[0] if len(proposals) == 1 else self._best(context, proposals, firings)
        decision = self._regulated(context, proposal, firings) if self._regulators else None
        return Chosen(proposal, decision, tuple(firings.fired))

    def _run(self, intervention: Intervention, hook: str, context: Context, value: Any) -> Any:
        """Ask one hook, with the memory of its intervention."""
        if intervention.remembers:
            context = replace(context, memory=self.memory.of(intervention.name) if self.memory is not None else {})
        try:
            result = getattr(intervention, hook)(context, value)
        except (InterventionFault, ConfinementUnavailable):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever an intervention raises is its fault
            _blame(intervention, hook, error)
        if intervention.remembers and self.memory is not None:
            try:
                self.memory.keep(intervention.name, context.memory)
            except ValueError as error:
                _blame(intervention, hook, error, "nonsense")
        return result

    def _asked(self, intervention: Intervention, context: Context) -> bool:
        """Whether the context part of the intervention's trigger holds."""
        if intervention.when is None:
            return True
        try:
            return bool(intervention.when.holds(context))
        except Exception as error:  # noqa: BLE001 - whatever an intervention raises is its fault
            _blame(intervention, "trigger", error)

    def _concerns(self, intervention: Intervention, proposal: Proposal) -> bool:
        return intervention.when is None or bool(intervention.when.concerns(proposal))

    def _realized(
        self, context: Context, reply: Reply, realizers: Sequence[Intervention], firings: Firings
    ) -> Proposal:
        cut = reply.finish_reason in CUT
        proposal = parse(reply.text, reply.tool_calls, context.protocol, context.tools, cut=cut)
        if context.own_tools:
            own = parse(reply.text, reply.tool_calls, context.protocol, context.own_tools, cut=cut)
            proposal = own if own.action is not None else proposal
        for intervention in realizers:
            if not self._concerns(intervention, proposal):
                continue
            better = self._run(intervention, "realize", context, proposal)
            if better is None:
                continue
            proposal = _typed(intervention, "realize", better, Proposal)
            firings.add(intervention.name)
            if proposal.withheld or proposal.again:
                break
        return proposal

    def _best(self, context: Context, proposals: list[Proposal], firings: Firings) -> Proposal:
        totals = [0.0] * len(proposals)
        for intervention in self._rankers:
            if not self._asked(intervention, context):
                continue
            scores = self._run(intervention, "rank", context, tuple(proposals))
            if scores is None:
                continue
            try:
                totals = [a + b for a, b in zip(totals, scores_from_json(scores, len(proposals)), strict=True)]
            except ValueError as error:
                _blame(intervention, "rank", error, "nonsense")
            firings.add(intervention.name)
        runnable = [p.action is not None and not p.withheld and not p.again for p in proposals]
        best = max(range(len(proposals)), key=lambda i: (runnable[i], totals[i], -i))
        return proposals[best]

    def _regulated(self, context: Context, proposal: Proposal, firings: Firings) -> Decision | None:
        merged: Decision | None = None
        for intervention in self._regulators:
            if not self._asked(intervention, context) or not self._concerns(intervention, proposal):
                continue
            decision = self._run(intervention, "regulate", context, proposal)
            if decision is None:
                continue
            firings.add(intervention.name)
            decision = _typed(intervention, "regulate", decision, Decision)
            merged = decision if merged is None else _merged(merged, decision)
            if merged.stop or merged.withhold or merged.again:
                break
            if decision.action is not None:
                proposal = replace(proposal, action=decision.action, problem="", withheld=False)
        return merged


def _merged(first: Decision, second: Decision) -> Decision:
    """Both decisions: notes together, the later action."""
    return Decision(
        note="\n".join(note for note in (first.note, second.note) if note),
        action=first.action if second.action is None else second.action,
        withhold=second.withhold,
        stop=second.stop,
        again=second.again,
    )


def _settled(draft: Draft, constrains: bool) -> Draft:
    """Drop choices that nobody enforces; a single choice needs no second sample."""
    if not constrains:
        return replace(draft, choices=None)
    return replace(draft, samples=1) if draft.choices is not None and len(draft.choices) == 1 else draft


def _rendered(actions: Sequence[str] | None, context: Context) -> tuple[str, ...] | None:
    if actions is None:
        return None
    return tuple(render(action, context.protocol, context.tools) for action in actions)


def _typed(intervention: Intervention, hook: str, value: Any, cls: Any) -> Any:
    if not isinstance(value, cls):
        error = TypeError(f"returned {type(value).__name__}, not {cls.__name__} or None")
        _blame(intervention, hook, error, "nonsense")
    return value


def _checked(intervention: Intervention, hook: str, check: Callable[[Any], Any], value: Any) -> Any:
    try:
        return check(value)
    except (ValueError, TypeError, RecursionError) as error:
        _blame(intervention, hook, error, "nonsense")


def _checked_draft(intervention: Intervention, draft: Any) -> Draft:
    shaped: Draft = _typed(intervention, "shape", draft, Draft)
    if shaped.choices is not None and not shaped.choices:
        _blame(intervention, "shape", ValueError("left no choice at all"), "nonsense")
    if not 1 <= shaped.samples <= MAX_SAMPLES:
        error = ValueError(f"asked for {shaped.samples} samples; 1 to {MAX_SAMPLES} are allowed")
        _blame(intervention, "shape", error, "nonsense")
    return shaped


def _blame(intervention: Intervention, hook: str, error: BaseException, cause: str = "intervention") -> NoReturn:
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, TimeoutError):
        what = "a regex took too long on this text; make the pattern simpler"
    raise InterventionFault(f"{intervention.name}: {hook} failed: {what}", cause=cause) from error
