"""``hl.bridge``: each request of an agent that exists is a step of an episode."""

from __future__ import annotations

import asyncio
import json
import queue
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError
from harnesslab.harness import Pipeline, load_harness
from harnesslab.rollout.env import Environment
from harnesslab.rollout.episode import play
from harnesslab.rollout.records import Episode
from tests.bridges.desks import plain_loop
from tests.desk import BASELINE, FAMILIES, HARNESS, TOOLS, Desk, clumsy

TASKS = [{"id": f"t-{n}", "number": n, "family": FAMILIES[n % 4], "input": Desk(n).instruction} for n in range(16)]
CONTRACT = {"contract/tone.yaml": b"kind: prompt\nparams: {text: Be kind.}\n"}


def plain(task: dict[str, Any]) -> Desk:
    desk = Desk(task["number"])
    plain_loop(openai.OpenAI(), desk)
    return desk


def streaming(task: dict[str, Any]) -> Desk:
    desk = Desk(task["number"])
    plain_loop(openai.OpenAI(base_url="http://nowhere.invalid/v1", api_key="x"), desk, stream=True)
    return desk


def agents_sdk(task: dict[str, Any]) -> Desk:
    """The OpenAI Agents SDK, which speaks the Responses API."""
    import agents

    desk, tools = Desk(task["number"]), []
    agents.set_tracing_disabled(True)
    for tool in TOOLS:
        function = tool["function"]

        async def invoke(context: Any, arguments: str, name: str = function["name"]) -> str:
            return desk.handle(name, json.loads(arguments))

        tools.append(
            agents.FunctionTool(
                name=function["name"], description="", params_json_schema=function["parameters"],
                on_invoke_tool=invoke, strict_json_schema=False,
            )
        )  # fmt: skip
    agent = agents.Agent(name="desk", instructions="You are the desk of a shop.", tools=tools, model="gpt-5-mini")
    agents.Runner.run_sync(agent, desk.instruction)
    return desk


def langgraph(task: dict[str, Any]) -> Desk:
    import langchain_openai as chat
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import tools_condition

    desk = Desk(task["number"])
    model = chat.ChatOpenAI(model="gpt-5-mini").bind_tools(TOOLS)

    def work(state: Any) -> Any:
        from langchain_core.messages import ToolMessage

        calls = state["messages"][-1].tool_calls
        return {
            "messages": [
                ToolMessage(desk.handle(call["name"], call["args"]), tool_call_id=call["id"]) for call in calls
            ]
        }

    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", work)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    graph.compile().invoke({"messages": [("system", "You are the desk of a shop."), ("user", desk.instruction)]})
    return desk


async def pydantic_ai(task: dict[str, Any]) -> Desk:
    """A coroutine function."""
    import pydantic_ai as ai

    desk = Desk(task["number"])
    agent = ai.Agent("openai-chat:gpt-5-mini", system_prompt="You are the desk of a shop.")

    @agent.tool_plain
    def find_order(order: str) -> str:
        return desk.handle("find_order", {"order": order})

    @agent.tool_plain
    def refund(order: str, euros: float) -> str:
        return desk.handle("refund", {"order": order, "euros": euros})

    @agent.tool_plain
    def close_ticket(ticket: str) -> str:
        return desk.handle("close_ticket", {"ticket": ticket})

    await agent.run(desk.instruction)
    return desk


PACKAGES: dict[Any, tuple[str, ...]] = {
    agents_sdk: ("agents",), langgraph: ("langgraph", "langchain_openai"), pydantic_ai: ("pydantic_ai",),
}  # fmt: skip
PROGRAM = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import openai
from tests.bridges.desks import plain_loop
from tests.desk import Desk
desk = Desk(json.load(sys.stdin)["number"])
plain_loop(openai.OpenAI(), desk)
print(json.dumps(desk.solved))
"""


def model(messages: Any, tools: Any = None) -> Any:
    """The desk's model; once the ticket is closed it says so in words."""
    last = messages[-1]
    if last["role"] == "tool" and "is closed" in str(last["content"]):
        return "Done."
    return clumsy(messages, tools)


def solved(task: Any, desk: Desk) -> bool:
    return desk.solved


def played(
    world: Any, files: dict[str, bytes], llm: Any = model, budget: int = 8, numbers: Any = range(16)
) -> list[Episode]:
    agent = hl.Agent(load_harness(files), llm)
    every = {
        int(task.id.partition("-")[2]): task for split in ("search", "gate", "sealed") for task in world.tasks(split)
    }

    async def all_of_them() -> list[Episode]:
        from harnesslab.rollout.guard import GuardedEnv

        found = []
        for number in numbers:
            env = await GuardedEnv.make(world)
            found.append(await play(env, every[number], agent.pipeline, agent.backbone, budget=budget))
            await env.close()
        return found

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("run", [plain, streaming, agents_sdk, langgraph, pydantic_ai], ids=lambda run: run.__name__)
def test_agents_that_exist_are_played_as_they_are(run: Callable[..., Any]) -> None:
    for package in PACKAGES.get(run, ()):  # here, because a skip on the agent's thread would be the agent's failure
        pytest.importorskip(package, reason=f"needs {package} (extra 'test')")
    world = hl.bridge(TASKS, run=run, score=solved)
    numbers = range(16) if run is plain else range(4)
    before = played(world, BASELINE, numbers=numbers)
    after = played(world, HARNESS, numbers=numbers)
    assert [episode.reason for episode in after if not episode.solved] == []
    assert [episode.solved for episode in before] == [number % 4 == 0 for number in numbers]
    first = after[0].steps[0]
    assert first.request["messages"][0]["content"] == "You are the desk of a shop."
    assert first.action == {"name": "find_order", "arguments": {"order": "A-70"}} and first.executed
    assert "Refunds are in euros." in first.result
    assert {name for episode in after for name in episode.fired} == {
        "action/rescue",
        "regulation/finish",
        "regulation/units",
    }


def test_a_program_is_an_agent_as_well() -> None:
    world = hl.bridge(TASKS, command=[sys.executable, "-c", PROGRAM], score=lambda task, output: json.loads(output))
    episodes = played(world, HARNESS, numbers=range(4))
    assert [episode.solved for episode in episodes] == [True] * 4, [episode.reason for episode in episodes]


def test_a_lab_trains_around_an_agent(tmp_path: Path) -> None:
    world: Environment = hl.bridge(TASKS, run=plain, score=solved, name="desk", budget=8)
    lab = hl.Lab.open(tmp_path / "lab", env=world)
    llm = hl.Agent(load_harness(BASELINE), model).backbone
    trainer = hl.Trainer(lab, llm, settings={"progress": False})
    run = trainer.measure()
    plain_ones = sum(task.family == "plain" for task in world.tasks("search"))
    assert (run.solved, run.tasks) == (plain_ones, 7)
    failures = trainer.diagnose(run)
    assert len(failures) == run.tasks - run.solved > 0
    lab.close()


def test_scores_may_be_graded() -> None:
    world = hl.bridge(TASKS, run=plain, score=lambda task, desk: 0.5 if not desk.solved else 1, solved_at=0.4)
    half = played(world, BASELINE, numbers=[3])[0]
    assert (half.solved, half.reward) == (True, 0.5)


@pytest.mark.parametrize("score", [None, "yes", 2, -1, float("nan"), [1]])
def test_a_score_that_is_none_is_the_environments_fault(score: Any) -> None:
    episode = played(hl.bridge(TASKS, run=plain, score=lambda task, desk: score), BASELINE, numbers=[0])[0]
    assert (episode.status, episode.owner) == ("unscorable", "environment") and "score returned" in episode.reason


def test_an_agent_that_breaks_on_a_reply_has_failed_its_task() -> None:
    def run(task: Any) -> Any:
        openai.OpenAI().chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        raise KeyError("calls")

    episode = played(hl.bridge(TASKS, run=run, score=solved), BASELINE, llm=lambda messages: "Hello.", numbers=[0])[0]
    assert (episode.status, episode.solved) == ("finished", False) and "KeyError" in episode.steps[0].result


@pytest.mark.parametrize("how", ["returns", "raises", "hangs"])
def test_an_agent_that_never_asks_its_model_is_named(how: str) -> None:
    import threading

    over = threading.Event()

    def run(task: Any) -> Any:
        if how == "raises":
            raise OSError("no network")
        if how == "hangs":
            over.wait(20)
        return 1

    try:
        episode = played(hl.bridge(TASKS, run=run, score=solved, deadline=0.5), BASELINE, numbers=[0])[0]
    finally:
        over.set()
    assert episode.status == "unscorable" and "model" in episode.reason


def test_an_episode_that_ends_lets_the_agent_go() -> None:
    ended: queue.Queue[str] = queue.Queue()

    def run(task: Any) -> Any:
        client = openai.OpenAI(max_retries=0)
        try:
            for _ in range(99):
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "again"}])
        except openai.APIStatusError as error:
            ended.put(str(error))
            raise

    episode = played(
        hl.bridge(TASKS, run=run, score=solved), BASELINE, llm=lambda messages: "No.", budget=3, numbers=[0]
    )[0]
    assert episode.length == 3 and "budget of 3" in episode.reason
    assert "the episode is over" in ended.get(timeout=10)


def test_many_episodes_at_once_do_not_mix(tmp_path: Path) -> None:
    world = hl.bridge(TASKS, run=plain, score=solved, name="desk", budget=8)
    pipeline = Pipeline(load_harness(HARNESS))
    agent = hl.Agent(pipeline, model)

    async def one(task: hl.Task) -> Episode:
        from harnesslab.rollout.guard import GuardedEnv

        env = await GuardedEnv.make(world)
        try:
            return await play(env, task, pipeline, agent.backbone, budget=8)
        finally:
            await env.close()

    async def all_of_them() -> list[Episode]:
        return await asyncio.gather(*(one(task) for task in world.tasks("search")))

    assert all(episode.solved for episode in asyncio.run(all_of_them()))


def test_a_pattern_on_the_system_message_limits_an_intervention() -> None:
    limited = b"kind: prompt\nwhen: {system: the planner}\nparams: {text: Be kind.}\n"
    files = {**BASELINE, "contract/tone.yaml": limited}

    def run(task: Any) -> str:
        client, said = openai.OpenAI(), []
        for who in ("planner", "worker"):
            messages: Any = [{"role": "system", "content": f"You are the {who}."}, {"role": "user", "content": "Go."}]
            said.append(client.chat.completions.create(model="m", messages=messages).choices[0].message.content)
        return " ".join(map(str, said))

    def echo(messages: Any) -> str:
        return "kind" if "Be kind." in messages[0]["content"] else "plain"

    world = hl.bridge(TASKS, run=run, score=lambda task, said: said == "kind plain")
    assert played(world, files, llm=echo, numbers=[0])[0].solved


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"run": plain, "command": ["x"]}, {"run": 3}, {"command": "python agent.py"}, {"command": []}, {"run": plain, "score": None},
        {"run": plain, "budget": 0}, {"run": plain, "tasks": []}, {"run": plain, "tasks": 3}, {"run": plain, "tasks": {"train": [1]}},
        {"run": plain, "tasks": [{"id": "a"}, {"id": "a"}]}, {"run": plain, "tasks": [{"split": "dev"}]},
    ],
)  # fmt: skip
def test_what_cannot_be_a_bridge_is_named(wrong: dict[str, Any]) -> None:
    given = {"tasks": TASKS, "score": solved} | wrong
    with pytest.raises(ConfigError, match="bridge"):
        hl.bridge(given.pop("tasks"), **given)


def test_splits_are_the_same_in_every_process() -> None:
    world = hl.bridge(TASKS, run=plain, score=solved)
    assert [len(world.tasks(split)) for split in ("search", "gate", "sealed")] == [7, 6, 3]
    given = hl.bridge({"search": ["a"], "gate": ["b", "c"]}, run=plain, score=solved)
    assert [len(given.tasks(split)) for split in ("search", "gate", "sealed")] == [1, 2, 0]
    assert world.version == hl.bridge(TASKS, run=plain, score=solved).version
    assert world.version != hl.bridge(TASKS, run=streaming, score=solved).version
