"""Somebody else's agent: the harness applied to its requests as patches, and to the replies before it sees them.

The agent owns its prompt and its loop. A :class:`Conversation` reads the chat messages of a request as a Context, adds what the
harness has to say to a copy of them, and remembers what it added, so that later requests, in which the agent repeats its own
history, show the model the same past again. Nothing is rebuilt: what no hook touches is passed on as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harnesslab.harness.context import Action, Context, Decision, Draft, Proposal, Turn
from harnesslab.harness.pipeline import Chosen, Perceived, Pipeline, Prepared
from harnesslab.harness.protocol import dumps
from harnesslab.harness.regexes import Regex
from harnesslab.harness.toolschema import checked, function, name_of
from harnesslab.llm.types import Completion

Message = dict[str, Any]
OPEN, CLOSE = "<harness>", "</harness>"
"""Around what the harness adds to a system message."""
TEXT = 20_000
"""Characters of one message that interventions see."""
PARALLEL = "parallel"
"""The name under which several calls of one reply are recorded as one action."""


@dataclass(slots=True)
class Mark:
    """What the harness did at one place of a conversation.

    ``note`` belongs beside what follows; ``fired`` are the interventions that took part in the reply here; ``hidden`` are replies
    that the agent never saw, each with the message that the model was shown instead of a result. ``seen`` is the observation
    in the harness's words, where it has rewritten it.
    """

    note: str = ""
    fired: tuple[str, ...] = ()
    hidden: tuple[tuple[Message, str, tuple[str, ...]], ...] = ()
    seen: str | None = None


@dataclass(slots=True)
class Outcome:
    """One reply after the harness: what the agent gets, or why it gets nothing.

    ``calls`` are ``{"id", "name", "arguments"}``; ``changed`` says whether they differ from those of the model.
    """

    reply: Completion
    text: str
    calls: tuple[dict[str, Any], ...]
    changed: bool = False
    note: str = ""
    stopped: bool = False
    withheld: str | None = None

    @property
    def message(self) -> Message:
        """The chat message for the agent."""
        return assistant(self.text, self.calls)

    @property
    def action(self) -> Action:
        """The same as the action of a step."""
        if not self.calls:
            return self.text
        calls = [{"name": call["name"], "arguments": _object(call["arguments"])} for call in self.calls]
        return calls[0] if len(calls) == 1 else {"name": PARALLEL, "arguments": {"calls": calls}}


@dataclass(slots=True)
class Conversation:
    """The requests of one agent. ``marks`` may be shared by many: places are told apart by all that came before them.

    ``only``: the harness is limited to requests whose system message has this pattern in it; others pass untouched.
    """

    marks: MutableMapping[str, Mark] = field(default_factory=dict)
    only: Regex | None = None
    scope: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] | None = None
    outcome: Outcome | None = None
    _keys: tuple[str, ...] = ()

    def receive(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> None:
        """Take the next request. Raises ValueError for tools that cannot be used."""
        self.messages = tuple(messages)
        self.tools = checked(tools) if tools else None
        keys, key = [], self.scope
        for message in self.messages:
            key = _next(key, message)
            keys.append(key)
        self._keys = tuple(keys)

    @property
    def concerned(self) -> bool:
        """Whether the harness has to do with this request."""
        if self.only is None:
            return True
        return self.only.search(self._system) is not None

    @property
    def _system(self) -> str:
        return "\n".join(text_of(message) for message in self.messages if _is_system(message))

    def context(self, budget: int) -> Context:
        """What an intervention may see of the conversation so far."""
        turns: list[Turn] = []
        seen: list[str] = []  # since the last reply
        note = instruction = ""
        for key, message in zip(self._keys, self.messages, strict=True):
            mark = self.marks.get(key)
            if _is_system(message):
                continue
            if message.get("role") == "assistant":
                turns.append(_turn(seen, message, mark.fired if mark else (), False))
                seen, note = [], mark.note if mark else ""
            else:
                text = text_of(message)[:TEXT]
                instruction = instruction or (text if message.get("role") == "user" else "")
                if not seen and turns and note:
                    text, note = f"{text}\n{note}", ""
                seen.append(text)
                if turns and not turns[-1].invalid:
                    turns[-1] = replace(turns[-1], result="\n".join(seen))
            if mark and mark.seen is not None and key != self._keys[-1]:
                seen = [mark.seen]
                if turns and not turns[-1].invalid:
                    turns[-1] = replace(turns[-1], result=mark.seen)
            for reply, told, fired in mark.hidden if mark and mark.hidden else ():
                turns.append(replace(_turn(seen, reply, fired, True), result=told))
                seen = [told]
        steps = len(turns)
        return Context(
            instruction=instruction,
            observation="\n".join(seen),
            history=tuple(turns),
            tools=self.tools,
            step=min(steps, budget - 1),
            budget=budget,
            protocol="tools",
            system=self._system[:TEXT],
        )

    def see(self, pipeline: Pipeline, budget: int) -> Perceived:
        """The context of this request with the observation and the tools as the harness has them; tools of its own are left out."""
        context = self.context(budget)
        if not self.concerned:
            return Perceived(context, {}, ())
        seen = pipeline.see(context)
        here = self._keys[-1] if self._keys else self.scope
        mark = self.marks.get(here, Mark())
        if seen.context.observation != context.observation and not mark.hidden:
            self.marks[here] = replace(mark, seen=seen.context.observation)
        offered = tuple(tool for tool in seen.context.tools or () if name_of(tool) not in seen.own)
        return Perceived(replace(seen.context, tools=offered or None, own_tools=None), {}, seen.fired)

    def begin(self, pipeline: Pipeline, context: Context) -> Prepared:
        """The request for the model; where the harness has nothing to do with it, as the agent made it."""
        if not self.concerned:
            return Prepared(Draft(), tuple(map(dict, self.messages)), None, (), self.tools, ())
        ready = pipeline.begin(context)
        return ready._replace(messages=self.patched(ready.draft), choices=None, tools=context.tools)

    def patched(self, draft: Draft) -> tuple[Message, ...]:
        """The messages for the model: those of the agent, with what the harness adds."""
        found: list[Message] = []
        note, last = "", None
        for place, (key, given) in enumerate(zip(self._keys, self.messages, strict=True)):
            message, mark = dict(given), self.marks.get(key)
            if message.get("role") == "assistant":
                note = mark.note if mark else ""
            elif not _is_system(message):
                following = self.messages[place + 1] if place + 1 < len(self.messages) else None
                if note and (following is None or following.get("role") == "assistant"):
                    message, note = beside(message, after=note), ""
                last = len(found)
            if mark and mark.seen is not None:
                message = self._rewritten(place, message, mark.seen)
            found.append(message)
            for reply, told, _ in mark.hidden if mark else ():
                found += [dict(reply), *answers(reply, told)]
                last = len(found) - 1
        if last is not None and (draft.before or draft.after):
            found[last] = beside(found[last], "\n\n".join(draft.before), "\n\n".join(draft.after))
        return tuple(with_system(found, draft.system))

    def _rewritten(self, place: int, message: Message, seen: str) -> Message:
        """The last message of an observation in the harness's words; of several, only what was put behind them."""
        texts = [text_of(self.messages[place])]
        while place and self.messages[place - 1].get("role") not in ("assistant", "system", "developer"):
            place -= 1
            texts.insert(0, text_of(self.messages[place]))
        before = "\n".join(texts)
        if seen.startswith(before):
            return beside(message, after=seen[len(before) :].strip())
        return {**message, "content": seen} if len(texts) == 1 else message

    def ask_again(self, messages: Sequence[Mapping[str, Any]], told: str) -> tuple[Message, ...]:
        """The messages of a request that asks again: the same, then the reply as it was, then the text."""
        assert self.outcome is not None
        reply = assistant(self.outcome.reply.text, _named(self.outcome.reply.tool_calls))
        return (*map(dict, messages), reply, *answers(reply, told))

    def choose(self, pipeline: Pipeline, context: Context, replies: Sequence[Completion]) -> Chosen:
        """From the replies of the model to what the agent gets, which is :attr:`outcome`; parallel calls are each realized."""
        if not context.tools or not self.concerned:  # without tools, the form of an action is the agent's own
            reply = replies[0]
            proposal = Proposal(reply.text, reply.text or None, tool_calls=tuple(map(dict, reply.tool_calls)))
            self.outcome = Outcome(reply, reply.text, tuple(map(dict, reply.tool_calls)))
            return Chosen(proposal, None, ())
        first = pipeline.choose(context, replies)
        reply = next((one for one in replies if _same(one, first.proposal)), replies[0])
        parts = [first]
        if len(reply.tool_calls) > 1:
            parts = [pipeline.choose(context, [replace(reply, tool_calls=(call,))]) for call in reply.tool_calls]
        fired = tuple(dict.fromkeys(name for part in (first, *parts) for name in part.fired))
        calls = [_realized(part, reply, place, context.step) for place, part in enumerate(parts)]
        given = tuple(call for call in calls if call is not None)
        changed = any(not _equal(one, two) for one, two in zip(given, reply.tool_calls, strict=False))
        changed = changed or len(given) != len(reply.tool_calls)
        decisions = [part.decision or Decision() for part in parts]
        note = "\n".join(dict.fromkeys(decision.note for decision in decisions if decision.note))
        withheld = [_withheld(part) for part in parts if _withheld(part) is not None]
        self.outcome = outcome = Outcome(
            reply,
            text="" if given and not reply.tool_calls else reply.text,
            calls=given,
            changed=changed,
            note=note,
            stopped=any(decision.stop for decision in decisions),
            withheld="\n".join(dict.fromkeys(filter(None, withheld))) or "This was not executed." if withheld else None,
        )
        part = next((part for part in parts if part.again), parts[0])
        decision = replace(
            part.decision or Decision(), note=note, stop=outcome.stopped, withhold=outcome.withheld is not None
        )
        return Chosen(part.proposal, decision, fired)

    def remembered(self, fired: tuple[str, ...]) -> Outcome:
        """The outcome; what the next request has to know of it is kept: a reply that the agent does not get, or the note behind the one it gets."""
        outcome = self.outcome
        assert outcome is not None
        here = self._keys[-1] if self._keys else self.scope
        if outcome.withheld is not None:
            mark, reply = self.marks.get(here, Mark()), outcome.reply
            hidden = (assistant(reply.text, _named(reply.tool_calls)), outcome.withheld, fired)
            self.marks[here] = replace(mark, hidden=(*mark.hidden, hidden))
        elif outcome.note or fired:
            self.marks[_next(here, outcome.message)] = Mark(outcome.note, fired)
        return outcome


def assistant(text: str, calls: Sequence[Mapping[str, Any]]) -> Message:
    """A reply as a chat message."""
    message: Message = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        message["tool_calls"] = [
            {"id": str(call.get("id") or ""), "type": "function",
             "function": {"name": call["name"], "arguments": _text(call["arguments"])}}
            for call in calls
        ]  # fmt: skip
    return message


def answers(reply: Mapping[str, Any], told: str) -> list[Message]:
    """What a model is shown in place of results of its reply."""
    calls = reply.get("tool_calls") or ()
    return [{"role": "tool", "tool_call_id": call["id"], "content": told} for call in calls] or [
        {"role": "user", "content": told}
    ]


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whose content may be a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping) and "text" in part)


def beside(message: Mapping[str, Any], before: str = "", after: str = "") -> Message:
    """A copy of a message with a paragraph before or after its content."""
    content = message.get("content")
    if isinstance(content, list):
        first = [{"type": "text", "text": before}] if before else []
        return {**message, "content": [*first, *content, *([{"type": "text", "text": after}] if after else [])]}
    joined = "\n\n".join(text for text in (before, content if isinstance(content, str) else "", after) if text)
    return {**message, "content": joined}


def with_system(messages: Sequence[Message], paragraphs: Sequence[str]) -> list[Message]:
    """The messages with a marked paragraph at the end of the system message."""
    added = "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
    if not added:
        return list(messages)
    text = f"{OPEN}\n{added}\n{CLOSE}"
    place = next((i for i, message in enumerate(messages) if not _is_system(message)), len(messages))
    if not place:
        return [{"role": "system", "content": text}, *messages]
    return [*messages[: place - 1], beside(messages[place - 1], after=text), *messages[place:]]


def _is_system(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("system", "developer")


def _next(key: str, message: Mapping[str, Any]) -> str:
    """The key of a place: everything up to and including this message, however a client writes it down again."""
    calls = [
        (call.get("id"), function(call).get("name"), _object(function(call).get("arguments")))
        for call in message.get("tool_calls") or ()
    ]
    said = [key, message.get("role"), text_of(message).strip(), calls, message.get("tool_call_id")]
    return hashlib.blake2b(json.dumps(said, default=str, sort_keys=True).encode(), digest_size=16).hexdigest()


def _turn(seen: Sequence[str], message: Mapping[str, Any], fired: tuple[str, ...], invalid: bool) -> Turn:
    calls = message.get("tool_calls") or ()
    text = text_of(message)[:TEXT]
    action: Action = text
    if calls:
        inner = function(calls[0])
        action = {"name": str(inner.get("name") or ""), "arguments": _object(inner.get("arguments"))}
    return Turn("\n".join(seen), text, action, "", invalid, fired)


def _same(reply: Completion, proposal: Proposal) -> bool:
    return reply.text == proposal.raw and tuple(map(dict, reply.tool_calls)) == proposal.tool_calls


def _withheld(part: Chosen) -> str | None:
    """What the model is told of a reply that is withheld; None where it is not."""
    decision = part.decision or Decision()
    if decision.withhold:
        return decision.note or part.proposal.problem
    return part.proposal.problem if part.proposal.withheld else None


def _realized(part: Chosen, reply: Completion, place: int, step: int) -> dict[str, Any] | None:
    """The call that the agent gets; None for a text, which is passed on."""
    given = reply.tool_calls[place] if place < len(reply.tool_calls) else None
    decided = part.decision.action if part.decision is not None else None
    action = decided if decided is not None else part.proposal.action
    if not isinstance(action, dict):
        return dict(given) if given is not None else None
    identity = given.get("id") if given is not None else ""  # some servers give none
    digest = hashlib.blake2b(f"{step}/{place}/{reply.text}".encode("utf-8", "replace"), digest_size=9).hexdigest()
    return {"id": identity or f"call_{digest}", "name": action["name"], "arguments": action.get("arguments", {})}


def _equal(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    return one["name"] == two["name"] and one["arguments"] == two["arguments"]


def _object(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            return {"text": arguments}
    return dict(arguments) if isinstance(arguments, Mapping) else {}


def _named(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The calls, each with an id, so that an answer can name it."""
    return [{**call, "id": call.get("id") or f"call_{place}"} for place, call in enumerate(calls)]


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else dumps(arguments if arguments is not None else {})
