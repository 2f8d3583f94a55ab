"""``hl.Agent``: a user's own loop has the semantics of the trusted loop, because both use the same step."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BackboneError, BudgetExceeded, ConfigError
from harnesslab.harness import Pipeline, load_harness
from harnesslab.rollout.agent import Limits
from harnesslab.rollout.episode import play
from tests.desk import BASELINE, HARNESS, TOOLS, Desk, DeskEnv, DeskWorld, call, clumsy
from tests.worlds import Corridor

ROOT = Path(__file__).parents[2]
WALK = {"harness.toml": b'name = "walk"\n[prompt]\nsystem = "Walk."\nhistory = 3\n'}


def handle(harness: hl.Harness, llm: Any, number: int) -> tuple[Desk, hl.AgentRun]:
    """What a user writes: their desk, their loop."""
    desk = Desk(number)
    run = hl.Agent(harness, llm, budget=6).start(desk.instruction, tools=TOOLS)
    observation = "The ticket is open."
    while (action := run.act(observation)) is not None:
        assert isinstance(action, dict)
        observation = desk.handle(action["name"], action["arguments"])
        if desk.closed:
            run.finish(observation)
    return desk, run


@pytest.mark.parametrize(("files", "solved"), [(BASELINE, 4), (HARNESS, 16)])
def test_a_loop_of_ones_own_solves_what_the_lab_says(files: dict[str, bytes], solved: int) -> None:
    harness, asked = load_harness(files), []

    def llm(messages: Any, tools: Any) -> Any:
        asked.append((messages, tools))
        return clumsy(messages, tools)

    async def lab() -> list[hl.Episode]:
        tasks, agent = DeskWorld().tasks("search"), hl.Agent(harness, llm)
        return [await play(DeskEnv(), task, agent.pipeline, agent.backbone, budget=6) for task in tasks]

    episodes = asyncio.run(lab())
    in_lab, asked = asked, []
    own = [handle(harness, llm, number) for number in range(16)]
    assert [desk.solved for desk, _ in own] == [episode.solved for episode in episodes]
    assert sum(desk.solved for desk, _ in own) == solved
    assert asked == in_lab, "the model is sent the same"
    for (_, run), episode in zip(own, episodes, strict=True):
        assert [turn.result for turn in run.turns] == [step.result for step in episode.steps]
        assert [turn.fired for turn in run.turns] == [step.fired for step in episode.steps]
        assert [turn.invalid for turn in run.turns] == [step.invalid for step in episode.steps]


@pytest.mark.parametrize("replies", [["I go.", "Action: right", "Action: up", "Action: left"], ["Action: right"] * 5])
def test_text_actions_invalid_ones_and_the_budget(replies: list[str]) -> None:
    harness = load_harness(WALK)
    task = hl.Task("t", "search", "f", options={"length": 3})
    episode = asyncio.run(play(Corridor(), task, Pipeline(harness), hl.LLM.scripted(list(replies)), budget=4))
    world, run = Corridor(), hl.Agent(harness, hl.LLM.scripted(list(replies)), budget=4).start("Reach the last room.")
    observation, info = world.reset(options=task.options)
    invalid = False
    while not run.done:
        action = run.act(observation, invalid=invalid, admissible=info["public"]["admissible"])
        if action is not None:
            observation, _, ended, _, info = world.step(action)
            invalid = info["public"]["invalid"]
            if ended:
                run.finish(observation, reason="solved")
    assert run.act(observation, invalid=invalid) is None
    assert [(turn.observation, turn.result, turn.invalid) for turn in run.turns] == [
        (step.observation, step.result, step.invalid) for step in episode.steps
    ]
    assert run.reason == episode.reason


STOP = {
    **WALK,
    "regulation/stop.py": b'def regulate(context, proposal):\n    return {"stop": True, "note": "Enough."}\n',
}


def test_a_regulation_stops_the_run() -> None:
    run = hl.Agent(load_harness(STOP), lambda messages: "Action: right").start("Go.")
    assert run.act("Room 0.") is None
    assert run.done and run.reason == "a regulation stopped the episode: Enough."
    assert run.act("Room 1.") is None


def test_the_await_twin_runs_inside_a_loop() -> None:
    async def own() -> Any:
        run = hl.Agent(load_harness(WALK), lambda messages: "Action: right").start("Go.")
        return await run.act_async("Room 0."), run.act("Room 1.")

    assert asyncio.run(own()) == ("right", "right")


class Message:
    """As the openai package returns it."""

    def model_dump(self) -> dict[str, Any]:
        return {"choices": [{"message": {"content": "Action: right"}, "finish_reason": "stop"}]}


class Callable:
    async def __call__(self, messages: Any) -> str:
        await asyncio.sleep(0)
        return "Action: right"


async def coroutine(messages: Any, **options: Any) -> str:
    return f"Action: {'right' if 'seed' in options else 'left'}"


@pytest.mark.parametrize(
    "llm",
    [
        lambda messages: "Action: right",
        lambda messages: {"role": "assistant", "content": "Action: right"},
        lambda messages: {"choices": [{"message": {"content": [{"type": "text", "text": "Action: right"}]}}]},
        lambda messages, seed=0: Message(),
        lambda messages: hl.Completion("Action: right"),
        lambda messages: coroutine(messages, seed=1),
        coroutine,
        Callable(),
        hl.LLM.scripted(["Action: right"]),
    ],
)
def test_any_callable_is_a_backbone(llm: Any) -> None:
    assert hl.Agent(load_harness(WALK), llm).start("Go.").act("Room 0.") == "right"


@pytest.mark.parametrize("answer", [None, 3, [], object(), {}])
def test_an_answer_of_another_form_is_named(answer: Any) -> None:
    def mine(messages: Any) -> Any:
        return answer

    with pytest.raises(BackboneError, match="mine"):
        hl.Agent(load_harness(WALK), mine).start("Go.").act("Room 0.")


@pytest.mark.parametrize("wrong", [{"llm": 3}, {"budget": 0}, {"budget": True}, {"harness": 3}])
def test_what_cannot_be_an_agent_is_named(wrong: dict[str, Any]) -> None:
    given = {"harness": load_harness(WALK), "llm": clumsy} | wrong
    with pytest.raises(ConfigError, match=r"backbone|budget|harness"):
        hl.Agent(**given)


def test_a_call_that_failed_can_be_made_again_and_loses_nothing() -> None:
    broken = [False, True, True, False]

    def llm(messages: Any, tools: Any) -> Any:
        if broken.pop(0):
            raise OSError("the line is down")
        return call("find_order", order="A-73") if len(messages) < 3 else clumsy(messages)

    run = hl.Agent(load_harness(HARNESS), llm).start(Desk(3).instruction, tools=TOOLS)
    assert run.act("The ticket is open.") == {"name": "find_order", "arguments": {"order": "A-73"}}
    for _ in range(2):
        with pytest.raises(BackboneError, match="the line is down"):
            run.act("The order cost 1625 cents.")
    assert run.act("The order cost 1625 cents.") == {"name": "refund", "arguments": {"order": "A-73", "euros": 16.25}}
    assert run.step == 2 and [turn.result for turn in run.turns] == [
        "The order cost 1625 cents.\nRefunds are in euros."
    ]


def test_limits_and_the_meter_hold() -> None:
    meter = hl.Meter(max_calls=1)
    run = hl.Agent(load_harness(WALK), lambda messages: "Action: right", meter=meter).start("Go.")
    assert run.act("Room 0.") == "right"
    with pytest.raises(BudgetExceeded):
        run.act("Room 1.")
    slow = hl.Agent(load_harness(WALK), lambda messages: asyncio.sleep(60), limits=Limits(reply=0.1)).start("Go.")
    with pytest.raises(BackboneError, match=r"did not reply within 0\.1 s"):
        slow.act("Room 0.")


def test_one_agent_serves_many_runs_at_once() -> None:
    agent = hl.Agent(load_harness(HARNESS), clumsy)

    async def all_of_them() -> list[Any]:
        runs = [agent.start(Desk(number).instruction, tools=TOOLS) for number in range(16)]
        return await asyncio.gather(*(run.act_async("The ticket is open.") for run in runs))

    assert [action["arguments"]["order"] for action in asyncio.run(all_of_them())] == [f"A-{70 + n}" for n in range(16)]


PROGRAM = """
import json, resource, sys
import harnesslab as hl
hl.Agent  # its import is measured
seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
from harnesslab.harness import load_harness
harness = load_harness({"harness.toml": b'name = "x"', "action/rescue.yaml": b"kind: rescue", "action/snap.yaml": b"kind: snap"})
assert hl.Agent(harness, lambda messages: "Action: go").start("Go.").act("Room.") == "go"
print(json.dumps([seconds, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_a_step_is_light() -> None:
    """Neither git nor SQLite, Jupyter or openai: nothing outside the extra 'agent' and the standard library."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {line.partition(">")[0] for line in project["optional-dependencies"]["agent"]}
    assert listed <= {line.partition(">")[0] for line in project["dependencies"]}
    allowed = {"pydantic_core", "typing_inspection", "typing_extensions", "yaml", "_yaml", "harnesslab"}
    allowed |= {name.replace("-", "_") for name in listed}
    found: list[float] = []
    for _ in range(3):
        done = subprocess.run([sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=True)
        seconds, modules = json.loads(done.stdout)
        found.append(seconds)
    assert min(found) < 0.5, "CPU time, best of three: the wall clock of a shared machine says little"
    heavy = {"git", "sqlite3", "_sqlite3", "openai", "httpx", "IPython", "jupyter_server", "ipywidgets", "numpy"}
    assert not heavy & set(modules)
    installed = set(packages_distributions()) - {"_distutils_hack"}  # a .pth file loads it at every start
    assert {name for name in modules if name in installed} <= allowed | sys.stdlib_module_names
