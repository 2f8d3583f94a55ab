"""What a harness can express beyond a request and an action: observations, tools, memory, and asking again. Played as an episode."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BackboneError
from harnesslab.harness import Pipeline, load_harness
from harnesslab.harness.context import MAX_AGAIN
from harnesslab.panels.trajectory import step_html
from harnesslab.rollout.certify import replay
from harnesslab.rollout.env import Task
from harnesslab.rollout.episode import play
from harnesslab.rollout.records import Episode, Step
from harnesslab.rollout.taxonomy import diagnose
from tests.worlds import Corridor, CorridorWorld

TASK = Task("t-1", "search", "odd", seed=1, options={"length": 4})
TEXT = {"harness.toml": b'name = "t"\nformat = 1\nprotocol = "text"\n[prompt]\nsystem = "Walk."\nhistory = 9\n'}
JSON = {"harness.toml": b'name = "t"\nformat = 1\nprotocol = "json"\n[prompt]\nsystem = "Walk."\nhistory = 9\n'}
NATIVE = {"harness.toml": b'name = "t"\nformat = 1\nprotocol = "tools"\n[prompt]\nhistory = 9\n'}
GO = {
    "type": "function",
    "function": {
        "name": "go",
        "description": "Walk.",
        "parameters": {"type": "object", "properties": {"way": {"type": "string"}}, "required": ["way"]},
    },
}


class ToolCorridor(Corridor):
    """The corridor, walked by calls of a tool."""

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict]:
        if not isinstance(action, dict) or action.get("name") != "go":
            return "What?", 0.0, False, False, self._info(True)
        return super().step(action["arguments"].get("way"))

    def _info(self, invalid: bool) -> dict:
        info = super()._info(invalid)
        del info["public"]["admissible"]
        info["public"]["tools"] = [GO]
        return info


class Listener:
    """A backbone that says what a function of the messages says, and keeps the requests."""

    def __init__(self, says: Callable[[list[dict[str, Any]]], Any]):
        self.says, self.asked = says, []

    def __call__(self, messages: list[dict[str, Any]], tools: Any = None, seed: int | None = None) -> Any:
        self.asked.append({"messages": messages, "tools": tools, "seed": seed})
        return self.says(messages)

    def last(self, number: int = -1) -> str:
        return str(self.asked[number]["messages"][-1]["content"])


def run(
    base: dict[str, bytes], files: dict[str, str], says: Any, *, budget: int = 6, env: Any = None
) -> tuple[Episode, Listener]:
    llm = Listener(says)
    pipeline = Pipeline(load_harness({**base, **{path: text.encode() for path, text in files.items()}}))
    backbone = hl.Agent(pipeline, llm).backbone
    world = env or (Corridor() if base is TEXT else ToolCorridor())
    return asyncio.run(play(world, TASK, pipeline, backbone, budget=budget)), llm


def call_of(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": "x", "type": "function", "function": function}]}


RIGHT = '{"name": "go", "arguments": {"way": "right"}}'
ANNOTATE = """
def observe(context, observation):
    context["memory"]["n"] = context["memory"].get("n", 0) + 1
    return f"{observation} [{context['memory']['n']}]"
"""


def test_an_observation_is_rewritten_once_and_for_good() -> None:
    episode, llm = run(TEXT, {"contract/note.py": ANNOTATE}, lambda messages: "Action: right", budget=3)
    assert [(step.observation, step.seen, step.result) for step in episode.steps] == [
        ("Room 0. [1]", "Room 0.", "Room 1."),
        ("Room 1. [2]", "Room 1.", "Room 2."),
        ("Room 2. [3]", "Room 2.", "Room 3."),
    ]
    said = [m["content"] for m in llm.asked[-1]["messages"] if m["role"] == "user"]
    assert [text.splitlines()[-1] for text in said] == ["Room 0. [1]", "Room 1. [2]", "Room 2. [3]"]
    assert episode.fired == {"contract/note": 3}


def test_what_was_rewritten_is_in_the_history_that_others_see() -> None:
    looking = "def shape(context, draft):\n    return {**draft, 'after': ['|'.join(t['result'] for t in context['history'])]}\n"
    _, llm = run(
        TEXT, {"contract/note.py": ANNOTATE, "skill/look.py": looking}, lambda messages: "Action: right", budget=3
    )
    assert llm.last().endswith("Room 1. [2]|Room 2. [3]")


def test_a_rewritten_observation_does_not_fork_a_replay() -> None:
    episode, _ = run(TEXT, {"contract/note.py": ANNOTATE}, lambda messages: "Action: right", budget=3)
    assert asyncio.run(replay(CorridorWorld(), TASK, episode)) is None
    assert Step.from_json(episode.steps[0].to_json()) == episode.steps[0]


def test_observers_build_on_each_other_in_order() -> None:
    first = "def observe(context, observation):\n    return observation + ' a'\n"
    second = "def observe(context, observation):\n    return context['observation'] + ' b' if observation == context['observation'] else 'no'\n"
    episode, _ = run(
        TEXT, {"contract/a.py": first, "contract/b.py": second}, lambda messages: "Action: right", budget=1
    )
    assert episode.steps[0].observation == "Room 0. a b"


PATCH = """
def offer(context, tools):
    tools[0]["function"]["description"] = "Walk, one room a call."
    tools[0]["function"]["parameters"]["properties"]["way"]["enum"] = ["left", "right"]
    return tools
"""


def test_tools_are_patched_in_the_request_and_in_the_text() -> None:
    _, llm = run(JSON, {"contract/tool.py": PATCH}, lambda messages: RIGHT)
    assert "Walk, one room a call." in llm.asked[0]["messages"][0]["content"]
    assert '["left", "right"]' in llm.asked[0]["messages"][0]["content"]
    call = {
        "role": "assistant",
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "go", "arguments": '{"way": "right"}'}}],
    }
    episode, llm = run(NATIVE, {"contract/tool.py": PATCH}, lambda messages: call)
    assert episode.solved and llm.asked[0]["tools"][0]["function"]["description"] == "Walk, one room a call."
    assert GO["function"]["description"] == "Walk."  # type: ignore[index]


ADDER = """
def offer(context, tools):
    return [*tools, {"type": "function", "function": {"name": "add", "description": "Add numbers.",
        "parameters": {"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "number"}}}, "required": ["numbers"]}}}]

def call(context, call):
    return str(sum(call["arguments"]["numbers"]))
"""


def test_a_tool_of_the_harness_is_answered_without_the_environment() -> None:
    says = iter(['{"name": "add", "arguments": {"numbers": [2, 3]}}'] + [RIGHT] * 4)
    episode, llm = run(JSON, {"action/add.py": ADDER}, lambda messages: next(says))
    first = episode.steps[0]
    assert (first.executed, first.invalid, first.result, first.forced) == (False, False, "5", None)
    assert first.action == {"name": "add", "arguments": {"numbers": [2, 3]}}
    assert episode.solved and episode.length == 5 and episode.invalid == 0
    assert "- add: Add numbers." in llm.asked[0]["messages"][0]["content"] and llm.last(1) == "5"


def test_a_tool_can_stand_for_several_calls_of_the_environment() -> None:
    text = """
def offer(context, tools):
    return [*tools, {"type": "function", "function": {"name": "run", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}}]

def call(context, call):
    return {"actions": [{"name": "go", "arguments": {"way": "right"}}] * call["arguments"]["n"]}
"""
    episode, llm = run(JSON, {"action/run.py": text}, lambda messages: '{"name": "run", "arguments": {"n": 4}}')
    assert episode.solved and episode.length == 4 and len(llm.asked) == 1
    assert [step.forced for step in episode.steps] == [True] * 4
    assert [len(step.replies) for step in episode.steps] == [1, 0, 0, 0]
    assert [step.result for step in episode.steps] == ["Room 1.", "Room 2.", "Room 3.", "Room 4."]


def test_the_rest_is_dropped_when_one_is_not_understood() -> None:
    text = ADDER.replace(
        'return str(sum(call["arguments"]["numbers"]))',
        "return {'actions': [{'name': 'go', 'arguments': {'way': w}} for w in ('right', 'up', 'right')]}",
    )
    says = iter(['{"name": "add", "arguments": {"numbers": []}}', RIGHT, RIGHT, RIGHT])
    episode, llm = run(JSON, {"action/add.py": text}, lambda messages: next(says))
    assert [(step.result, step.invalid) for step in episode.steps[:3]] == [
        ("Room 1.", False),
        ("There is no way up.", True),
        ("Room 2.", False),
    ]
    assert len(llm.asked) == 4


BESIDE = {
    "text": ('Action: add\n{"numbers": [2, 3]}', "Action: right"),
    "json": ('{"name": "add", "arguments": {"numbers": [2, 3]}}', '{"action": "right"}'),
    "tools": (call_of("add", numbers=[2, 3]), "Action: right"),
}


@pytest.mark.parametrize("protocol", BESIDE)
def test_a_tool_of_the_harness_beside_actions_of_text(protocol: str) -> None:
    using, acting = BESIDE[protocol]
    says = iter([using, *[acting] * 4])
    base = {"harness.toml": TEXT["harness.toml"].replace(b'"text"', f'"{protocol}"'.encode())}
    files = {"action/add.py": ADDER, "action/snap.yaml": "kind: snap\n", "action/rescue.yaml": "kind: rescue\n"}
    episode, llm = run(base, files, lambda messages: next(says), env=Corridor())
    first = episode.steps[0]
    assert (
        (first.executed, first.invalid, first.result) == (False, False, "5") and episode.solved and episode.length == 5
    )
    assert "Add numbers." in json.dumps(llm.asked[0]) and llm.last(1) == "5"
    assert "numbers" in json.dumps(llm.asked[1]["messages"][-2])
    assert not any(step.forced for step in episode.steps)


def test_a_patch_of_tools_is_not_asked_where_there_are_none() -> None:
    episode, _ = run(TEXT, {"contract/tool.py": PATCH}, lambda messages: "Action: right")
    assert episode.solved and not episode.fired


AGAIN = """
def realize(context, proposal):
    if proposal["action"] != "right" and context["asked"] < 2:
        return {**proposal, "again": f"Not that. ({context['asked']})"}
"""


def test_asking_again_costs_calls_and_no_steps() -> None:
    says = iter(["Action: left", "I do not know", "Action: right", "Action: right", "Action: right", "Action: right"])
    episode, llm = run(TEXT, {"action/again.py": AGAIN}, lambda messages: next(says))
    assert episode.solved and episode.length == 4 and len(llm.asked) == 6
    first = episode.steps[0]
    assert [reply.get("again") for reply in first.replies] == ["Not that. (0)", "Not that. (1)", None]
    assert first.raw == "Action: right" and not first.forced and episode.fired == {"action/again": 1}
    assert [m["content"] for m in llm.asked[2]["messages"][-4:]] == [
        "Action: left",
        "Not that. (0)",
        "I do not know",
        "Not that. (1)",
    ]
    assert len({request["seed"] for request in llm.asked}) == 6
    assert "Not that" not in json.dumps(llm.asked[3]["messages"]), "the history holds what counted"


def test_asking_again_is_bounded_and_then_the_action_counts() -> None:
    text = "def realize(context, proposal):\n    return {**proposal, 'again': 'No.'}\n"
    episode, llm = run(TEXT, {"action/again.py": text}, lambda messages: "Action: right")
    assert episode.solved and episode.length == 4 and len(llm.asked) == 4 * (1 + MAX_AGAIN)


def test_regulation_can_ask_again_and_native_calls_are_told_as_calls() -> None:
    text = "def regulate(context, proposal):\n    return {'again': 'Really?'} if not context['asked'] else None\n"
    call = {
        "role": "assistant",
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "go", "arguments": '{"way": "right"}'}}],
    }
    episode, llm = run(NATIVE, {"regulation/again.py": text}, lambda messages: call)
    assert episode.solved and len(llm.asked) == 8
    shown, answer = llm.asked[1]["messages"][-2:]
    assert shown["tool_calls"][0]["function"]["name"] == "go" and shown["tool_calls"][0]["id"] == answer["tool_call_id"]
    assert answer == {"role": "tool", "tool_call_id": answer["tool_call_id"], "content": "Really?"}


def test_a_note_alone_withholds_nothing() -> None:
    text = "def regulate(context, proposal):\n    return {'note': 'Mind the step.'}\n"
    episode, _ = run(TEXT, {"regulation/lint.py": text}, lambda messages: "Action: right")
    assert episode.solved and episode.steps[0].result == "Room 1.\nMind the step." and episode.steps[0].executed


COUNT = "def realize(context, proposal):\n    m = context['memory']\n    m['n'] = m.get('n', 0) + 1\n    return {**proposal, 'action': str(m)}\n"


@pytest.mark.parametrize("unconfined", [False, True])
def test_each_intervention_has_its_own_memory_for_one_episode(unconfined: bool) -> None:
    looking = "def regulate(context, proposal):\n    return {'note': str(context['memory'])}\n"
    harness = load_harness(
        {**TEXT, "action/count.py": COUNT.encode(), "regulation/look.py": looking.encode()}, unconfined=unconfined
    )
    for _ in range(2):
        episode = asyncio.run(play(Corridor(), TASK, Pipeline(harness), hl.LLM.null("Action: right"), budget=2))
        assert [step.action for step in episode.steps] == ["{'n': 1}", "{'n': 2}"]
        assert {step.note for step in episode.steps} == {"{}"}


def test_a_step_that_is_made_again_remembers_what_it_did_before() -> None:
    failures = iter([True, True, False, False, False])

    def says(messages: Any) -> str:
        if next(failures):
            raise OSError("the line is down")
        return "Action: right"

    agent = hl.Agent(
        load_harness({**TEXT, "contract/note.py": ANNOTATE.encode(), "action/count.py": COUNT.encode()}), says, budget=3
    )
    started = agent.start("Walk.")
    for _ in range(2):
        with pytest.raises(BackboneError):
            started.act("Room 0.")
    assert [started.act("Room 0."), started.act("Room 1.")] == ["{'n': 1}", "{'n': 2}"]
    assert [turn.observation for turn in started.turns] == ["Room 0. [1]"]


LIES = {
    "observe": ["return 3", "return 'x' * 300000", "return ['x']"],
    "offer": ["return {}", "return [3]", "return [*tools, {'function': {'name': 'x'}}]", "return [*tools, *tools]"],
    "call": ["return 3", "return {'text': 3}", "return {'actions': 'x'}", "return {'actions': ['x'] * 17}", "return {'actions': [{'name': 'add', 'arguments': {}}]}"],
    "realize": ["return {**proposal, 'again': 3}", "context['memory'] = [1]", "context['memory']['x'] = 'x' * 20000", "context['memory'] = None", "context['memory']['x'] = float('inf')"],
}  # fmt: skip


@pytest.mark.parametrize(("hook", "body"), [(hook, body) for hook, bodies in LIES.items() for body in bodies])
@pytest.mark.parametrize("unconfined", [False, True])
def test_what_a_hook_must_not_return_is_charged_to_it(hook: str, body: str, unconfined: bool) -> None:
    value = {"observe": "observation", "offer": "tools", "realize": "proposal", "call": "call"}[hook]
    text = f"def {hook}(context, {value}):\n    {body}\n" + (ADDER.partition("\ndef call")[0] if hook == "call" else "")
    harness = load_harness({**JSON, "action/bad.py": text.encode()}, unconfined=unconfined)
    llm = hl.LLM.null('{"name": "add", "arguments": {"numbers": [1]}}' if hook == "call" else RIGHT)
    episode = asyncio.run(play(ToolCorridor(), TASK, Pipeline(harness), llm, budget=2))
    assert (episode.owner, episode.cause) == ("harness", "nonsense"), episode.reason
    assert f"action/bad: {hook} failed" in episode.reason


def test_the_viewer_shows_what_was_rewritten_and_asked_again() -> None:
    says = iter(["Action: <b>left</b>", "Action: right"])
    files = {"contract/note.py": ANNOTATE, "action/again.py": AGAIN.replace("Not that.", "Not <that>.")}
    episode, _ = run(TEXT, files, lambda messages: next(says), budget=1)
    shown = str(step_html(episode.steps[0], of=1))
    for part in (
        "Room 0. [1]",
        "the environment said:",
        "asked again in the same step:",
        "Not &lt;that&gt;. (0)",
        "&lt;b&gt;left",
    ):
        assert part in shown, part


def test_a_call_of_an_own_tool_is_not_taken_for_a_withheld_action() -> None:
    said = '{"name": "add", "arguments": {"numbers": [2, 3]}}'
    episode, _ = run(JSON, {"action/add.py": ADDER}, lambda messages: said)
    assert not episode.solved and "withheld" not in diagnose(episode).cause
    held = "def regulate(context, proposal):\n    return {'withhold': True, 'note': 'No.'}\n"
    episode, _ = run(JSON, {"regulation/no.py": held}, lambda messages: RIGHT)
    assert "withheld" in diagnose(episode).cause
