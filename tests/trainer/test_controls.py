"""The controls beside a sealed result: each kind, in each action protocol, with seeds, and what they cost."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError
from harnesslab.llm import Completion, Request
from harnesslab.llm.control import FirstControl, OverlapControl
from harnesslab.rollout.deaf import Deaf, DeafEnvironment
from harnesslab.rollout.env import Action, Policy, Split, Task
from harnesslab.rollout.records import Episode, Run
from harnesslab.trainer.controls import CONTROLS, attempts, chosen

FRUIT = ("apple", "pear", "plum", "fig", "kiwi", "lemon", "melon", "peach")
SAY = {
    "name": "say",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}


class Echo:
    """Say the fruit that the task names. ``tells``: where it names it. ``tools``: by a call; else among admissible lines."""

    name, version, max_steps = "echo", "1", 2

    def __init__(self, starter: Path, tells: str = "both", tools: bool = False):
        self._starter, self.tells, self.tools = starter, tells, tools

    def tasks(self, split: Split) -> list[Task]:
        return [Task(f"{split}-{n}", split, "f", n, {"split": split}) for n in range(len(FRUIT))]

    def make(self) -> Any:
        return _Echo(self)

    def oracle(self, task: Task) -> Policy:
        word = FRUIT[task.seed]
        return lambda _o, _i: {"name": "say", "arguments": {"word": word}} if self.tools else f"say {word}"

    def starter(self) -> Path:
        return self._starter


class _Echo:
    def __init__(self, world: Echo):
        self.world = world

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict]:
        self.word = FRUIT[int(seed or 0)]
        told = f"Say {self.word}, please."
        return (told if self.world.tells != "instruction" else "Well?"), self._info(False, told)

    def step(self, action: Action) -> tuple[str, float, bool, bool, dict]:
        said = action.get("arguments", {}).get("word") if isinstance(action, dict) else action.removeprefix("say ")
        return "Hm.", 0.0, said == self.word, False, self._info(said == self.word, f"Say {self.word}, please.")

    def close(self) -> None:
        pass

    def _info(self, solved: bool, told: str) -> dict:
        public: dict[str, Any] = {"instruction": "" if self.world.tells == "observation" else told}
        public |= {"tools": [SAY]} if self.world.tools else {"admissible": [f"say {word}" for word in FRUIT]}
        return {"public": public, "private": {"solved": solved}}


def starter(folder: Path, protocol: str) -> Path:
    folder.mkdir()
    (folder / "harness.toml").write_text(
        f'name = "echo"\nformat = 1\nprotocol = "{protocol}"\n[prompt]\nsystem = "Act."\n'
    )
    return folder


class Reader(hl.Backbone):
    """Says the fruit that it is told, as the protocol wants it, at a price."""

    def __init__(self, protocol: str = "text", price: int = 10):
        self.protocol, self.price, self.temperatures = protocol, price, list[Any]()

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"model": "reader", "sampling": {"temperature": 0}}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        self.temperatures.append(request.temperature)
        words = re.findall(r"Say (\w+), please", " ".join(str(m.get("content")) for m in request.messages))
        word = words[-1] if words else "nothing"
        spent = {"prompt_tokens": self.price, "completion_tokens": 1, "model": "reader"}
        if self.protocol == "tools":
            call = {"id": "1", "name": "say", "arguments": {"word": word}}
            return Completion("", tool_calls=(call,), **spent)  # type: ignore[arg-type]
        text = json.dumps({"action": f"say {word}"}) if self.protocol == "json" else f"Action: say {word}"
        return Completion(text, **spent)  # type: ignore[arg-type]


def trainer(lab: hl.Lab, llm: Any, **settings: Any) -> hl.Trainer:
    return hl.Trainer(lab=lab, llm=llm, settings={"progress": False, **settings})


@pytest.mark.parametrize("tells", ["both", "instruction", "observation"])
@pytest.mark.parametrize("protocol", ["text", "json", "tools"])
def test_a_deaf_model_does_another_task(
    open_lab: Callable[..., hl.Lab], tmp_path: Path, protocol: str, tells: str
) -> None:
    world = Echo(starter(tmp_path / "starter", protocol), tells, tools=protocol == "tools")
    made = trainer(open_lab(env=world), Reader(protocol))
    table = made.open_sealed(controls=["deaf"])
    rows = {row["backbone"]: row for row in table}
    assert (rows["reader"]["solved"], rows["reader"]["of"]) == (8, 8)
    assert (rows["deaf"]["solved"], rows["deaf"]["of"], rows["deaf"]["seeds"]) == (0, 8, 3)
    told = {e.instruction for run in made.lab.runs.runs(split="sealed", limit=9) for e in made.lab.load_run(run)}
    assert told == {f"Say {word}, please." for word in FRUIT}


def test_deaf_seeds_draw_other_tasks_and_are_measurements_of_their_own(tmp_path: Path) -> None:
    world = Echo(starter(tmp_path / "s", "text"))
    told = []
    for seed in (0, 1, 0):
        env = DeafEnvironment(world, seed).make()
        told.append(
            [env.reset(seed=t.seed, options=t.options)[1]["public"]["instruction"] for t in world.tasks("gate")]
        )
    assert told[0] == told[2] != told[1]
    assert Deaf(Reader(), 0).identity != Deaf(Reader(), 1).identity != Reader().identity


def test_a_world_of_one_instruction_has_no_deaf_control(open_lab: Callable[..., hl.Lab]) -> None:
    made = trainer(open_lab(), hl.LLM.scripted(lambda m: "Action: right", name="right"))
    table = made.open_sealed(controls=["deaf"], seeds=1)
    assert "no other task of the split has another instruction" in table.notes[-1]
    assert [row["backbone"] for row in table if row["harness"] != "none"] == ["right"]


def pick(control: Any, request: Request) -> str:
    return asyncio.run(control.complete(request)).text


def test_first_and_overlap_pick_by_their_rules() -> None:
    asked = Request((), options=("look", "take red apple", "take apple", "go"), instruction="Take the Apple.")
    assert pick(FirstControl(), asked) == "look"
    assert pick(OverlapControl(), asked) == "take apple"

    def after(*past: str) -> str:
        return pick(OverlapControl(), dataclasses.replace(asked, past=past))

    assert after("take apple") == "take red apple"
    assert after("take apple", "take red apple") == "look"
    assert after("look", "take apple", "go", "take red apple") == "look"
    calls = ('{"name": "say", "arguments": {"word": "fig"}}', '{"name": "say", "arguments": {"word": "apple"}}')
    native = asyncio.run(OverlapControl().complete(dataclasses.replace(asked, options=calls, tools=(SAY,))))
    assert native.tool_calls[0]["arguments"] == {"word": "apple"} and native.text == ""


@pytest.mark.parametrize("protocol", ["text", "json", "tools"])
def test_overlap_reads_the_task_in_every_protocol(
    open_lab: Callable[..., hl.Lab], tmp_path: Path, protocol: str
) -> None:
    world = Echo(starter(tmp_path / "starter", protocol), tools=protocol == "tools")
    table = trainer(open_lab(env=world), Reader(protocol)).open_sealed(controls=["overlap", "first"])
    rows = {row["backbone"]: row["solved"] for row in table}
    # With a tool its options are calls with single words seen; two of them, "Say" and the fruit, share as much.
    assert rows["overlap"] == 8
    assert rows["first"] <= 1


def test_controls_do_not_repeat_themselves_within_an_episode(open_lab: Callable[..., hl.Lab], tmp_path: Path) -> None:
    made = trainer(open_lab(env=Echo(starter(tmp_path / "s", "text"), "instruction")), hl.LLM.overlap())
    run = made.measure("gate")
    for episode in run:
        actions = [step.action for step in made.lab.load_steps(episode).steps]
        assert len(set(map(str, actions))) == len(actions)


def test_sampling_spends_what_the_present_harness_spends(open_lab: Callable[..., hl.Lab], tmp_path: Path) -> None:
    lab = open_lab(env=Echo(starter(tmp_path / "s", "text"), "instruction"))
    llm = Reader()
    made = trainer(lab, llm)
    assert "nothing to match" in " ".join(made.open_sealed(controls=["sampling"]).notes)
    prompt = {"contract/x.yaml": "kind: prompt\nparams:\n  text: Be kind.\n"}
    made.accept(hl.Proposal(prompt, "contract", "prompt", "contract/x", "kind"), reason="a test")
    assert "fewer tokens than two" in " ".join(made.open_sealed(controls=["sampling"]).notes)

    def run(tokens: int) -> Run:
        episodes = [Episode("t", "f", "", prompt_tokens=tokens, length=2)]
        return Run("1", "c", "sealed", {}, episodes)

    assert [attempts(run(10), run(n)) for n in (5, 10, 19, 20, 39, 10_000)] == [1, 1, 1, 2, 3, 16]
    assert attempts(run(0), run(0)) == 1


def test_sampling_counts_any_of_the_attempts_and_warms_a_greedy_model(
    open_lab: Callable[..., hl.Lab], tmp_path: Path
) -> None:
    lab = open_lab(env=Echo(starter(tmp_path / "s", "text"), "instruction"))

    class Dearer(Reader):
        """Longer prompts cost more, and every second attempt is wrong."""

        async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
            kind = any("Be kind" in str(m.get("content")) for m in request.messages)
            self.price = 40 if kind else 10
            reply = await super().complete(request, repeat=repeat)
            return (
                reply if not (repeat >= 900_000 and repeat % 2) else Completion("Action: say nothing", model="reader")
            )

    llm = Dearer()
    made = trainer(lab, llm)
    prompt = {"contract/x.yaml": "kind: prompt\nparams:\n  text: Be kind.\n"}
    made.accept(hl.Proposal(prompt, "contract", "prompt", "contract/x", "kind"), reason="a test")
    table = made.open_sealed(controls=["sampling"])
    row = next(row for row in table if "best of" in row["backbone"])
    assert (row["harness"], row["backbone"], row["solved"], row["of"]) == ("start", "reader, best of 3", 8, 8)
    assert "a single one solves 66.7%" in " ".join(table.notes)
    assert 1.0 in llm.temperatures and None in llm.temperatures


def test_the_cost_is_said_first(
    open_lab: Callable[..., hl.Lab], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = open_lab(env=Echo(starter(tmp_path / "s", "text"), "instruction"))
    made = trainer(lab, Reader(), progress=True, prices={"reader": (1e6, 2e6)})
    before = made.preview_sealed("all")
    assert [row["episodes"] for row in before] == [8, 24, 8, 8, 24, 128, 200]
    assert before[-1]["tokens"] is None and len(lab.openings()) == 0
    made.measure("gate")
    costs = {row["what"].split(":")[0].split(",")[0]: row for row in made.preview_sealed("all", seeds=2)}
    assert costs["reader"] | {"seconds": 0} == {
        "what": "reader", "episodes": 8, "calls": 8, "tokens": 88, "money": 96.0, "seconds": 0,
    }  # fmt: skip
    assert costs["random"]["tokens"] == 0 and costs["deaf"]["episodes"] == 16 and costs["deaf"]["tokens"] == 176
    capsys.readouterr()
    made.open_sealed(controls=["first"])
    printed = capsys.readouterr().out
    assert printed.startswith("opening the sealed split, at most") and "first: always takes" in printed


@pytest.mark.parametrize(
    ("controls", "seeds", "message"),
    [
        ("rnadom", None, "there is no control 'rnadom'"),
        (["deaf", None], None, "controls holds None"),
        (7, None, "takes a list of names or backbones, not int"),
        ([object()], None, "llm must be a backbone"),
        ("deaf", 0, "seeds=0 must be"),
        ("deaf", True, "seeds=True must be"),
    ],
)
def test_a_wrong_control_is_named_before_anything_is_opened(
    open_lab: Callable[..., hl.Lab], controls: Any, seeds: Any, message: str
) -> None:
    made = trainer(open_lab(), Reader())
    with pytest.raises(ConfigError, match=message):
        made.open_sealed(controls, seeds=seeds)
    assert len(made.lab.openings()) == 0


def test_all_means_every_control() -> None:
    assert [control.name for control in chosen("all", Reader(), None)] == list(CONTROLS)
    assert [len(control.backbones) for control in chosen("all", Reader(), 4)] == [4, 1, 1, 4, 0]
