"""A wrapped backbone behaves as the bare one in every declared member, and in what comes of a run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.errors import BackboneError
from harnesslab.harness import Pipeline, load_folder
from harnesslab.llm import Backbone, Completion, Meter, MinimalBackbone, Recording, Request, Wrapper
from harnesslab.llm.wrapper import as_backbone
from harnesslab.rollout.deaf import Deaf
from harnesslab.rollout.identity import concurrency_of
from harnesslab.rollout.records import Episode
from harnesslab.rollout.runner import Job, Runner
from harnesslab.trainer.controls import Sampled
from tests.worlds import STARTER, CorridorWorld

MEMBERS = [
    name
    for protocol in (MinimalBackbone, Backbone)
    for name, value in vars(protocol).items()
    if isinstance(value, property)
]
DEFAULTS = {"constrains": False, "control": False, "concurrency": 1, "served": {}}

WRAPPERS: dict[str, Callable[[Any, Path], Any]] = {
    "wrapper": lambda backbone, path: Wrapper(backbone),
    "metered": lambda backbone, path: Meter().wrap(backbone),
    "cached": lambda backbone, path: hl.Cached(backbone, path / "a.jsonl"),
    "metered and cached": lambda backbone, path: Meter().wrap(hl.Cached(backbone, path / "b.jsonl")),
    "cached and metered": lambda backbone, path: hl.Cached(Meter().wrap(backbone), Recording.open(path / "c.jsonl")),
}

NAMES = st.sampled_from(["a", "b 2", "ü"])
VALUES = st.fixed_dictionaries(
    {"identity": st.fixed_dictionaries({"model": NAMES, "seed": st.integers(0, 9)})},
    optional={
        "constrains": st.booleans(),
        "control": st.booleans(),
        "concurrency": st.integers(1, 99),
        "served": st.dictionaries(st.tuples(NAMES, NAMES), st.integers(1, 9)),
    },
)


def declaring(values: dict[str, Any], how: str) -> Any:
    """A backbone that declares these members, as attributes or as properties, or with the base as well."""

    async def complete(self: Any, request: Request, *, repeat: int = 0) -> Completion:
        return Completion("hello")

    read = {name: property(lambda self, value=value: value) for name, value in values.items()}
    body = {"complete": complete, **(values if how == "attributes" else read)}
    return type("Mine", (Backbone,) if how == "inherited" else (), body)()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(values=VALUES, how=st.sampled_from(["attributes", "properties", "inherited"]))
@pytest.mark.parametrize("kind", list(WRAPPERS))
def test_every_declared_member_is_passed_on_or_has_its_default(
    tmp_path_factory: pytest.TempPathFactory, kind: str, values: dict[str, Any], how: str
) -> None:
    bare = declaring(values, how)
    wrapped = WRAPPERS[kind](bare, tmp_path_factory.mktemp("wrapped"))
    for backbone in (wrapped, as_backbone(bare), as_backbone(wrapped)):
        assert {name: getattr(backbone, name) for name in MEMBERS} == DEFAULTS | values
    assert asyncio.run(wrapped.complete(Request(()))).text == "hello"


def subclasses(cls: type) -> list[type]:
    return [heir for child in cls.__subclasses__() for heir in (child, *subclasses(child))]


def test_one_place_passes_members_on() -> None:
    assert set(MEMBERS) == {"identity", *DEFAULTS}
    assert set(MEMBERS) <= vars(Wrapper).keys()
    ours = [cls for cls in subclasses(Wrapper) if cls.__module__.startswith("harnesslab.")]
    assert {cls.__name__ for cls in ours} >= {"Cached", "Metered"}
    # Only what makes it another measurement may be said anew, on top of what the wrapped one says.
    assert not [(cls.__name__, name) for cls in ours for name in DEFAULTS if name in vars(cls)]


@pytest.mark.parametrize("wrap", [Deaf, Sampled])
def test_a_control_has_an_identity_of_its_own_on_top_of_the_wrapped_one(wrap: Callable[..., Any]) -> None:
    bare = hl.LLM("m", temperature=0)
    own, wrapped = dict(as_backbone(bare).identity), dict(wrap(bare).identity)
    assert wrapped != own and set(wrapped) > set(own)


@pytest.mark.parametrize("make", [hl.LLM.random, hl.LLM.null, lambda: hl.LLM.scripted(["a"]), lambda: hl.LLM("m")])
def test_every_backbone_of_ours_inherits_the_defaults(make: Callable[[], Any]) -> None:
    backbone = make()
    assert as_backbone(backbone) is backbone
    for name in MEMBERS:
        assert isinstance(inspect.getattr_static(backbone, name), (property, bool, int))


def played(world: Any, llm: Any) -> list[Any]:
    """All that a run says of the agent, without times and the bodies that were sent."""
    pipeline, found = Pipeline(load_folder(STARTER)), dict[Any, Episode]()

    def sink(job: Job, episode: Episode) -> bool:
        found[episode.key] = episode
        return False

    jobs = [Job("baseline", pipeline, task, repeat) for task in world.tasks("search") for repeat in range(2)]
    asyncio.run(Runner(world, llm).run(jobs, sink))
    return [
        (e.task_id, e.repeat, e.solved, e.status, e.reward, e.invalid, e.length, e.reason, dict(e.fired),
         *((s.raw, s.action, s.executed, s.problem, s.result, s.invalid, s.forced) for s in e.steps))
        for _, e in sorted(found.items())
    ]  # fmt: skip


class ToolCorridor:
    """The corridor behind two tools: no action is listed, so that a control depends on the options that it is given."""

    def __init__(self, env: Any):
        self._env = env

    def _public(self, info: dict[str, Any]) -> dict[str, Any]:
        names = ("left", "right")
        tools = [
            {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
            for name in names
        ]
        public = {name: value for name, value in info["public"].items() if name != "admissible"}
        return {**info, "public": {**public, "tools": tools}}

    def reset(self, **options: Any) -> Any:
        observation, info = self._env.reset(**options)
        return observation, self._public(info)

    def step(self, action: Any) -> Any:
        name = action["name"] if isinstance(action, dict) else action
        observation, *rest, info = self._env.step(name)
        return observation, *rest, self._public(info)


class ToolWorld(CorridorWorld):
    name = "tool-corridor"

    def make(self) -> Any:
        return ToolCorridor(super().make())


@pytest.mark.parametrize(
    ("world", "make", "kind"),
    [
        *((ToolWorld, hl.LLM.random, kind) for kind in WRAPPERS),
        (CorridorWorld, hl.LLM.random, "cached"),
        (CorridorWorld, lambda: hl.LLM.scripted(lambda messages: "Action: right"), "metered and cached"),
    ],
)
def test_a_run_with_a_wrapped_backbone_is_the_bare_run(
    tmp_path: Path, kind: str, world: Any, make: Callable[[], Any]
) -> None:
    bare, wrap = played(world(), make()), WRAPPERS[kind]
    assert bare == played(world(), wrap(make(), tmp_path)) == played(world(), wrap(make(), tmp_path))
    if make is hl.LLM.random:
        assert not any(episode[5] for episode in bare), "a control that is given its options makes no invalid step"


class Three:
    """Declares only what is needed, and how many requests it takes at once."""

    identity = {"model": "three"}  # noqa: RUF012

    def __init__(self, concurrency: Any = 3):
        self.concurrency, self.now, self.most = concurrency, 0, 0

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        return Completion("Action: right")


@pytest.mark.parametrize("kind", ["bare", *WRAPPERS])
def test_a_run_plays_as_many_episodes_at_once_as_the_backbone_asks_for(tmp_path: Path, kind: str) -> None:
    mine = Three()
    played(CorridorWorld(), mine if kind == "bare" else WRAPPERS[kind](mine, tmp_path))
    assert mine.most == 3


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "four", None])
def test_a_wrong_concurrency_is_named(wrong: Any) -> None:
    with pytest.raises(BackboneError, match=r"the concurrency of Three must be a whole number of at least 1, not"):
        Runner(CorridorWorld(), Three(wrong))


def test_a_member_that_cannot_be_read_is_named() -> None:
    class Broken(Three):
        @property
        def concurrency(self) -> int:
            raise KeyError("settings")

        @concurrency.setter
        def concurrency(self, value: int) -> None: ...

    with pytest.raises(BackboneError, match="the concurrency of Broken raised KeyError"):
        concurrency_of(Broken())
