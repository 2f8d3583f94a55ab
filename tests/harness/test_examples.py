"""The interventions on the page about what a harness can express, each played in a small world where it makes the difference."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.harness import Pipeline, load_harness
from harnesslab.rollout.env import Task
from harnesslab.rollout.episode import play
from harnesslab.rollout.records import Episode

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "interventions"
TASK = Task("t", "search", "f", seed=0)


def tool(name: str, **parameters: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {k: {"type": v} for k, v in parameters.items()},
        "required": [*parameters],
    }
    return {"type": "function", "function": {"name": name, "description": f"{name}.", "parameters": schema}}


class World:
    """Answers each action with what ``respond`` says: an observation, or one with whether the task is solved."""

    def __init__(self, instruction: str, first: str, respond: Callable[[Any], Any], **public: Any):
        self.instruction, self.first, self.respond, self.public = instruction, first, respond, public
        self.got: list[Any] = []

    def _info(self, solved: bool) -> dict[str, Any]:
        return {"public": {"instruction": self.instruction, **self.public}, "private": {"solved": solved}}

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        return self.first, self._info(False)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.got.append(action)
        said = self.respond(action)
        observation, solved = said if isinstance(said, tuple) else (said, False)
        return observation, float(solved), solved, False, self._info(solved)


def run(world: World, replies: Any, *names: str, budget: int = 8, protocol: str = "json", history: int = 9) -> Episode:
    manifest = f'name = "t"\nprotocol = "{protocol}"\n[prompt]\nhistory = {history}\n'
    files = {"harness.toml": manifest.encode(), **{name: (EXAMPLES / name).read_bytes() for name in names}}
    says = iter(replies) if not callable(replies) else None
    llm = hl.LLM.scripted(replies if callable(replies) else lambda messages: next(says))  # type: ignore[arg-type]
    return asyncio.run(play(world, TASK, Pipeline(load_harness(files)), llm, budget=budget))


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def test_every_example_is_tested() -> None:
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.*")}
    assert found == {"skill/subgoals.py", "regulation/buy_guard.py", "regulation/eligible.py", "contract/empty_result.yaml",
                     "regulation/number_at_the_end.py", "action/calculator.py", "action/recall.py", "action/batch.py"}  # fmt: skip


def kitchen() -> World:
    done: list[str] = []
    order = ["take egg from table", "heat egg with microwave", "put egg on plate"]

    def respond(action: Any) -> Any:
        if len(done) < 3 and action == order[len(done)]:
            done.append(action)
            return "You did it.", len(done) == 3
        return "Nothing happens."

    return World("Heat some egg and put it on the plate.", "A table.", respond, admissible=[*order, "look"])


def test_the_subgoal_planner_carries_out_what_the_model_keeps_off() -> None:
    world = kitchen()
    episode = run(world, lambda messages: "Action: look", "skill/subgoals.py", protocol="text", budget=9)
    assert episode.solved and [step.action for step in episode.steps if step.forced] == ["take egg from table", "heat egg with microwave", "put egg on plate"]  # fmt: skip
    assert episode.length == 9, "each is forced only after two steps off it"
    shown = [step.request["messages"][-1]["content"].splitlines()[-1] for step in episode.steps]
    assert [shown[0], shown[3], shown[6]] == [
        "Next subgoal: take egg.",
        "Next subgoal: heat egg.",
        "Next subgoal: put egg.",
    ]
    assert not run(kitchen(), lambda messages: "Action: look", protocol="text", budget=9).solved


def test_the_subgoal_planner_leaves_a_model_alone_that_follows() -> None:
    episode = run(
        kitchen(),
        [f"Action: {action}" for action in kitchen().public["admissible"][:3]],
        "skill/subgoals.py",
        protocol="text",
    )
    assert episode.solved and episode.length == 3 and not any(step.forced for step in episode.steps)


def shop() -> World:
    state = {"chosen": False}

    def respond(action: Any) -> Any:
        state["chosen"] = state["chosen"] or action == "click[blue]"
        return ("Thank you.", state["chosen"]) if action == "click[buy now]" else "A mug [red] [blue]. Price: $9.00"

    return World("A mug, color: blue, lower than $10.", "A mug [red] [blue]. Price: $9.00", respond)


def test_the_buy_guard_asks_again_in_the_same_step() -> None:
    replies = ["Action: click[buy now]", "Action: click[blue]", "Action: click[buy now]"]
    episode = run(shop(), replies, "regulation/buy_guard.py", protocol="text", budget=2)
    assert episode.solved and episode.length == 2
    assert [reply.get("again", "")[:62] for reply in episode.steps[0].replies] == [
        "You are about to buy, but the option blue is wanted and not ch",
        "",
    ]
    stubborn = shop()
    episode = run(
        stubborn, lambda messages: "Action: click[buy now]", "regulation/buy_guard.py", protocol="text", budget=2
    )
    assert stubborn.got[0] == "click[buy now]", "it never locks the model out"


def test_the_buy_guard_reads_the_price() -> None:
    world = World("A mug lower than $10.", "A mug. Price: $1,290.00", lambda action: "Bought.")
    episode = run(
        world, lambda messages: "Action: click[buy now]", "regulation/buy_guard.py", protocol="text", budget=2
    )
    assert "the price is $1,290.00, and the limit is $10" in episode.steps[0].replies[0]["again"]


@pytest.mark.parametrize(("status", "reaches"), [("pending", True), ("delivered", False)])
def test_eligibility_is_checked_against_the_records_seen(status: str, reaches: bool) -> None:
    record = json.dumps({"order": {"order_id": "W1", "status": status, "items": []}})
    world = World("Cancel W1.", "Hello.", lambda action: record if action["name"] == "get_order" else "Cancelled.",
                  tools=[tool("get_order", order_id="string"), tool("cancel_order", order_id="string")])  # fmt: skip
    cancel = call("cancel_order", order_id="W1")
    episode = run(world, [cancel, call("get_order", order_id="W1"), cancel], "regulation/eligible.py", budget=3)
    assert episode.steps[0].result == "Look W1 up first: its status is not known." and not episode.steps[0].executed
    assert ({"name": "cancel_order", "arguments": {"order_id": "W1"}} in world.got) is reaches
    assert episode.steps[2].result == (
        "Cancelled." if reaches else "W1 is delivered, so cancel_order is not allowed. Tell the user."
    )


def test_a_result_is_annotated_and_stays_so() -> None:
    world = World(
        "Ask.",
        "A table.",
        lambda action: "[]" if "Lyon" in str(action) else "[(1,)]",
        tools=[tool("execute_sql", query="string")],
    )
    episode = run(world, [call("execute_sql", query="Lyon"), call("execute_sql", query="x"), call("execute_sql", query="y")],
                  "contract/empty_result.yaml", budget=3)  # fmt: skip
    assert [step.observation.startswith("[]\nNo row matches.") for step in episode.steps] == [False, True, False]
    assert "No row matches." in json.dumps(episode.steps[2].request["messages"]) and episode.steps[0].result == "[]"


def test_a_number_is_answered_in_the_last_step() -> None:
    tools = [tool("bash_action", script="string"), tool("answer_action", answer="string")]
    world = World("How many files are there?", "A shell.", lambda a: ("Done.", a["arguments"].get("answer") == "12") if a["name"] == "answer_action" else "v1.5.x has 12 of them", tools=tools)  # fmt: skip
    episode = run(
        world, lambda messages: call("bash_action", script="ls | wc -l"), "regulation/number_at_the_end.py", budget=3
    )
    assert episode.solved and episode.length == 3 and episode.steps[-1].forced
    assert not run(World("Delete it.", "12", lambda a: "no", tools=tools), lambda m: call("bash_action", script="x"), "regulation/number_at_the_end.py", budget=1).steps[0].forced  # fmt: skip


SQL = [tool("execute_sql", query="string")]


@pytest.mark.parametrize(
    ("expression", "result"),
    [("0.1 + 0.2", "0.3"), ("(3 - 5) * 4", "-8"), ("1 / 0", "Division by zero."), ("x + 1", "That is not an expression of numbers."),
     ("2 ** 99", "That is not an expression of numbers."), ("__import__('os')", "That is not an expression of numbers.")],
)  # fmt: skip
def test_the_calculator(expression: str, result: str) -> None:
    episode = run(
        World("Add.", "Go.", lambda a: "no", tools=SQL),
        [call("calculate", expression=expression)],
        "action/calculator.py",
        budget=1,
    )
    assert episode.steps[0].result == result and not episode.steps[0].invalid and not episode.steps[0].executed


def test_recall_finds_what_the_request_does_not_show() -> None:
    results = iter(["Oslo: 709\nRome: 2800", "b", "c"])
    replies = [*[call("execute_sql", query=q) for q in "abc"], call("recall", word="rome")]
    episode = run(
        World("Ask.", "Go.", lambda a: next(results), tools=SQL), replies, "action/recall.py", budget=4, history=1
    )
    assert episode.steps[3].result == "step 0: Rome: 2800"
    assert "recall" not in json.dumps(episode.steps[0].request) and "recall" in json.dumps(episode.steps[3].request)
    assert "Rome" not in json.dumps(episode.steps[3].request)


def test_a_batch_is_several_steps_for_one_call() -> None:
    world = World("Ask.", "Go.", lambda a: f"result of {a['arguments']['query']}", tools=SQL)
    episode = run(
        world, [call("execute_all", queries=["a", "b"]), call("execute_sql", query="c")], "action/batch.py", budget=3
    )
    assert [a["arguments"]["query"] for a in world.got] == ["a", "b", "c"] and episode.length == 3
    assert [len(step.replies) for step in episode.steps] == [1, 0, 1]
