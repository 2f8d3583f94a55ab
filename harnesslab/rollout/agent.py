"""One step of an episode, for whoever owns the loop: the trusted loop, a loop of a user's own, a bridge.

:meth:`AgentRun.act` takes an observation and returns the action to execute; everything between the two is the harness's and
the backbone's. Importing this needs neither git nor SQLite, Jupyter or openai.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnesslab.errors import ConfigError
from harnesslab.harness.context import MAX_AGAIN, Action, Context, Decision, Draft, Proposal, Turn
from harnesslab.harness.load import Harness, load_folder
from harnesslab.harness.pipeline import Chosen, Perceived, Pipeline, Prepared
from harnesslab.harness.prompt import ask_again
from harnesslab.harness.toolschema import checked
from harnesslab.llm.types import Completion, MinimalBackbone, Request
from harnesslab.llm.wrapper import Ask, as_backbone, shown
from harnesslab.rollout.asking import Limits as Limits
from harnesslab.rollout.asking import complete as complete
from harnesslab.rollout.asking import draw
from harnesslab.rollout.control import tool_calls as possible_calls
from harnesslab.rollout.foreign import Conversation
from harnesslab.rollout.guard import INSTRUCTION_LIMIT, observed
from harnesslab.rollout.loop import run_async, run_sync
from harnesslab.rollout.move import Move

if TYPE_CHECKING:
    from harnesslab.llm.meter import Meter

NOTHING = Decision()


class _Asked(NamedTuple):
    """What came of asking the model in one step: all replies, and what was chosen of the last ones."""

    ready: Prepared
    replies: tuple[Completion, ...]
    chosen: Chosen
    again: tuple[tuple[int, str], ...]


UNASKED = Prepared(Draft(), (), None, (), None, ())
"""The request of a step in which the model is not asked."""


class Agent:
    """A harness and a frozen LLM, ready to start runs; it holds nothing of a run, so one serves any number at once.

    ``harness``: a :class:`~harnesslab.harness.Harness`, or the folder of one. ``llm``: any backbone, or any callable that
    takes chat messages (and ``tools``, ``temperature``, ``max_tokens`` or ``seed`` where it names them) and returns a
    text, a chat message or a chat completion, as JSON or as an object of the openai package. ``budget``: steps of a run.
    ``meter``: counts the calls, and stops them when its budget is used up.
    """

    def __init__(
        self,
        harness: Harness | Pipeline | str | Path,
        llm: MinimalBackbone | Ask,
        *,
        budget: int = 50,
        meter: Meter | None = None,
        limits: Limits | None = None,
    ) -> None:
        if isinstance(harness, str | Path):
            harness = load_folder(harness)
        if not isinstance(harness, Harness | Pipeline):
            raise ConfigError(f"Agent: harness must be a Harness or the path of one, not {type(harness).__name__}")
        self.pipeline = harness if isinstance(harness, Pipeline) else Pipeline(harness)
        self.backbone = as_backbone(llm)
        self.budget = _positive(budget)
        limits = limits if limits is not None else Limits()
        if meter is not None:
            limits = replace(limits, allow=meter.begin, release=meter.release, spend=meter.spend)
        self.limits = limits

    @property
    def harness(self) -> Harness:
        """The harness at work."""
        return self.pipeline.harness

    def start(
        self,
        instruction: str,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        admissible: Sequence[str] | None = None,
        budget: int | None = None,
        seed: tuple[int, int] = (0, 0),
        repeat: int = 0,
    ) -> AgentRun:
        """Begin a run of at most ``budget`` steps. Asks nothing of the backbone.

        ``tools`` are OpenAI function schemas, ``admissible`` the possible actions where they are known. ``seed``: the
        seeds of a measurement and of a task, and ``repeat``, from which each draw derives its own.
        Raises ConfigError for tools that cannot be used.
        """
        return AgentRun(
            self,
            self.pipeline.episode(),
            instruction,
            _tools(tools),
            None if admissible is None else tuple(admissible),
            self.budget if budget is None else _positive(budget),
            (*seed, repeat),
        )

    def __repr__(self) -> str:
        return f"Agent({self.harness.name!r}, {shown(self.backbone):.80})"


@dataclass(slots=True, repr=False, eq=False)
class AgentRun:
    """One run of an agent: an observation goes in, the action to execute comes out.

    ``turns`` are the finished steps, oldest first; ``last`` is the newest :class:`Move`; ``reason`` says in words why the
    run is over. ``pipeline`` is the harness at work in this run: its Python interventions keep a process each, until the run
    is done or :meth:`finish` is called. ``tools`` and ``admissible`` may be changed between steps.
    """

    agent: Agent
    pipeline: Pipeline
    instruction: str
    tools: tuple[dict[str, Any], ...] | None
    admissible: tuple[str, ...] | None
    budget: int
    key: tuple[int, int, int]
    conversation: Conversation | None = None
    """The requests of somebody else's agent, where the run is one of those."""
    turns: tuple[Turn, ...] = ()
    last: Move | None = None
    reason: str = ""
    step: int = 0
    _stopped: bool = False
    _open: bool = False
    _busy: bool = False
    _queue: tuple[Action, ...] = ()
    _pending: str | None = field(default=None)

    @property
    def done(self) -> bool:
        """Whether no further action will come: the budget is used up, a regulation stopped the run, or :meth:`finish` was called."""
        return self._stopped or self.step >= self.budget

    def act(
        self,
        observation: str = "",
        *,
        invalid: bool = False,
        admissible: Sequence[str] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> Action | None:
        """The action to execute on this observation, or None when the run is :attr:`done`.

        ``observation`` is what the system outside shows: at the start, and then in answer to the action returned last.
        ``invalid``: it did not understand that action. ``admissible`` and ``tools``, where they have changed.
        An action is a text, or a tool call ``{"name": str, "arguments": dict}``. Steps that the harness withholds, or in
        which no action can be read, are spent here: the agent is shown the reason and asked again.

        Raises BackboneError where there is no reply, InterventionFault where an intervention fails, BudgetExceeded where
        the meter stops the call. After an error the same call can be made again; no step is lost.
        """
        return run_sync(self._act(observation, invalid, admissible, tools))

    async def act_async(
        self,
        observation: str = "",
        *,
        invalid: bool = False,
        admissible: Sequence[str] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> Action | None:
        """The ``await`` twin of :meth:`act`."""
        return await run_async(self._act(observation, invalid, admissible, tools))

    def finish(self, observation: str | None = None, *, invalid: bool = False, reason: str = "finished") -> None:
        """End the run, for instance because its goal is reached; ``observation`` answers the action returned last."""
        if self._open and observation is not None:
            self.settle(observation, invalid)
        self.reason = self.reason if self._stopped else reason
        self._stopped, self._open = True, False
        self.pipeline.close()

    async def decide(self, observation: str) -> Move:
        """One step: see, shape the request, ask, repair, regulate. An action that is executed waits for :meth:`settle`.

        After an error the run is as it was before, and the same call can be made again.
        """
        turns, memory = self.turns, self.pipeline.memory
        kept = memory.snapshot() if memory is not None else {}
        try:
            return await self._decide(observation)
        except BaseException:
            self.turns = turns
            if memory is not None:
                memory.restore(kept)
            raise

    async def _decide(self, observation: str) -> Move:
        if (talk := self.conversation) is not None:
            seen = talk.see(self.pipeline, self.budget)
            return self._moved(seen.context.observation, seen, await self._asked(seen))
        context = Context(
            instruction=self.instruction,
            observation=observation,
            history=self.turns,
            admissible=self.admissible,
            tools=self.tools,
            step=self.step,
            budget=self.budget,
            protocol=self.agent.harness.protocol,
        )
        seen = self.pipeline.see(context)
        if self.turns and seen.context.observation != observation:
            # For good: the step before brought what the harness has made of it, too.
            self.turns = (*self.turns[:-1], replace(self.turns[-1], result=seen.context.observation))
            seen = seen._replace(context=replace(seen.context, history=self.turns))
        if self._queue:
            action, *rest = self._queue
            self._queue = tuple(rest)
            asked = _Asked(UNASKED, (), self.pipeline.follow(seen.context, action), ())
        else:
            asked = await self._asked(seen)
        return self._moved(observation, seen, asked)

    async def _asked(self, seen: Perceived) -> _Asked:
        """Shape the request and ask, until there is a reply that need not be asked for again."""
        pipeline, backbone, context = self.pipeline, self.agent.backbone, seen.context
        talk = self.conversation
        ready = pipeline.begin(context, backbone.constrains) if talk is None else talk.begin(pipeline, context)
        # Only a control reads the options; a model is not made to wait for them.
        control = backbone.control
        request = Request(
            messages=ready.messages,
            choices=ready.choices,
            tools=ready.tools,
            temperature=ready.draft.temperature,
            max_tokens=ready.draft.max_tokens,
            options=(ready.options or possible_calls(context)) if control else (),
            instruction=context.instruction if control else "",
            past=tuple(turn.raw for turn in self.turns) if control else (),
        )
        replies: list[Completion] = []
        again: list[tuple[int, str]] = []
        fired: tuple[str, ...] = ()
        while True:
            key = (*self.key, self.step)
            new = await draw(backbone, request, ready.draft.samples, key, limits=self.agent.limits, before=len(replies))
            replies += new
            chosen = pipeline.choose(context, new) if talk is None else talk.choose(pipeline, context, new)
            fired = (*fired, *chosen.fired)
            if not chosen.again or len(again) == MAX_AGAIN:
                return _Asked(ready, tuple(replies), chosen._replace(fired=fired), tuple(again))
            again.append((len(replies), chosen.again))
            if talk is None:
                messages = ask_again(
                    request.messages, chosen.proposal, chosen.again, context, self.agent.harness.prompt
                )
            else:
                messages = talk.ask_again(request.messages, chosen.again)
            request = replace(request, messages=messages)
            context = replace(context, asked=len(again))

    def _moved(self, observation: str, seen: Perceived, asked: _Asked) -> Move:
        """What becomes of the choice, and the state of the run after it."""
        context, chosen = seen.context, asked.chosen
        fired = tuple(dict.fromkeys((*seen.fired, *asked.ready.fired, *chosen.fired)))
        proposal, decision = chosen.proposal, chosen.decision or NOTHING
        if decision.action is None and not (
            decision.stop or decision.withhold or proposal.withheld or proposal.action is None
        ):
            answer = self.pipeline.answer(seen, proposal.action)
            if answer is not None and answer.actions:
                first, *rest = answer.actions
                self._queue = tuple(rest)
                decision = replace(decision, action=first)
        else:
            answer = None
        action: Action | None = decision.action if decision.action is not None else proposal.action
        executes = not (decision.stop or decision.withhold or proposal.withheld or action is None)
        answered = answer is not None and not answer.actions
        executes, invalid = executes and not answered, not (executes or decision.stop)
        result = "" if executes else _unexecuted(proposal, decision)
        if answer is not None and answered:
            result = f"{answer.text}\n{decision.note}" if decision.note else answer.text
        outcome = None if self.conversation is None else self.conversation.remembered(fired)
        if outcome is not None:
            action, executes = outcome.action, not (outcome.stopped or outcome.withheld is not None)
            result, invalid = "" if executes else outcome.withheld or decision.note, outcome.withheld is not None
        elif decision.stop:
            action = proposal.action
        if decision.stop:
            self.reason = "a regulation stopped the episode" + (f": {decision.note}" if decision.note else "")
        move = Move(
            context, asked.ready, asked.replies, proposal, decision, action, executes, decision.stop, result, fired,
            invalid, observation, asked.again, outcome,
        )  # fmt: skip
        self.last, self.step, self._stopped, self._open = move, self.step + 1, decision.stop, executes
        if not executes:
            self._queue = ()
            self._turn(result, invalid)
        if self.step == self.budget and not decision.stop:
            self.reason = f"the budget of {self.budget} steps was used up"
        return move

    def settle(self, observation: str, invalid: bool = False) -> str:
        """Close the step whose action was executed; returns what the agent sees next: the observation and the harness's note."""
        if not self._open or self.last is None:
            raise ConfigError("settle: no action is waiting for its observation")
        note = self.last.decision.note
        result = f"{observation}\n{note}" if note else observation
        self._open = False
        self._queue = () if invalid else self._queue
        self._turn(result, invalid)
        return result

    def _turn(self, result: str, invalid: bool) -> None:
        move = self.last
        assert move is not None
        turn = Turn(move.context.observation, move.proposal.raw, move.action, result, invalid, move.fired)
        self.turns = (*self.turns, turn)

    async def _act(
        self,
        observation: str,
        invalid: bool,
        admissible: Sequence[str] | None,
        tools: Sequence[Mapping[str, Any]] | None,
    ) -> Action | None:
        if self._busy:
            raise ConfigError("act: this run is still deciding on its last observation; start one run for each episode")
        self._busy = True
        try:
            if self._pending is None:
                self._pending = observed(observation)
                if self.step == 0:
                    self.instruction = observed(self.instruction, INSTRUCTION_LIMIT) or self._pending
                self.admissible = None if admissible is None else tuple(admissible)
                self.tools = self.tools if tools is None else _tools(tools)
                if self._open:
                    self._pending = self.settle(self._pending, invalid)
            while not self.done:
                move = await self.decide(self._pending)
                if move.executes:
                    self._pending = None
                    return move.action
                self._pending = move.result
            self._pending = None
            self.pipeline.close()
            return None
        finally:
            self._busy = False

    def __repr__(self) -> str:
        state = self.reason if self.done and self.reason else f"step {self.step} of {self.budget}"
        return f"<AgentRun of {self.agent.harness.name!r}: {state}>"


def _unexecuted(proposal: Proposal, decision: Decision) -> str:
    """What the agent sees of a step that was not executed."""
    if decision.stop or (decision.withhold and decision.note):
        return decision.note
    return proposal.problem or decision.note


def _tools(tools: Sequence[Mapping[str, Any]] | None) -> tuple[dict[str, Any], ...] | None:
    if tools is None:
        return None
    try:
        return checked(tools)
    except ValueError as error:
        raise ConfigError(f"the tools cannot be used: {error}") from error


def _positive(budget: int) -> int:
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
        raise ConfigError(f"budget is {budget!r}; give a number of steps above 0")
    return budget
