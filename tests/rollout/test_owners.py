"""Every cell of the table of failures: who owns an episode that ended badly, and what happens next."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harnesslab.errors import BackboneError, ConfigError, EnvironmentFault
from harnesslab.harness import Pipeline, load_folder
from harnesslab.llm.failures import status_cause
from harnesslab.llm.types import Completion
from harnesslab.rollout import loop as loops
from harnesslab.rollout.calls import Calls, Overran
from harnesslab.rollout.episode import Limits, play
from harnesslab.rollout.guard import GuardedEnv
from harnesslab.rollout.loop import run_sync
from harnesslab.rollout.owners import CHARGED, NEXT, RULES
from harnesslab.rollout.records import Episode
from harnesslab.rollout.runner import Job, Runner
from harnesslab.store import RunStore
from tests.conftest import always
from tests.worlds import STARTER, Corridor, CorridorWorld

PIPELINE = Pipeline(load_folder(STARTER))


class Failing:
    """A backbone that raises, returns or does whatever it is given."""

    constrains = False
    identity: ClassVar[dict[str, str]] = {"model": "failing"}

    def __init__(self, what: Any):
        self.what = what

    async def complete(self, request: Any, *, repeat: int = 0) -> Any:
        if isinstance(self.what, BaseException):
            raise self.what
        if callable(self.what):
            return await self.what()
        return self.what


def played(world: Any, llm: Any, limits: Limits | None = None) -> list[Episode]:
    found: list[Episode] = []
    jobs = [Job("baseline", PIPELINE, task) for task in world.tasks("search")]
    run_sync(Runner(world, llm, limits=limits).run(jobs, lambda job, episode: bool(found.append(episode))))
    return found


def one(llm: Any, **limits: Any) -> Episode:
    task = CorridorWorld().tasks("search")[0]
    return asyncio.run(play(Corridor(), task, PIPELINE, llm, budget=3, limits=Limits(**limits)))


def test_every_cause_has_an_owner_with_a_rule() -> None:
    assert {rule.owner for rule in RULES.values()} == set(NEXT)
    assert all(RULES[cause].owner == "task" and RULES[then].owner == "harness" for cause, then in CHARGED.items())


@pytest.mark.parametrize("cause", RULES)
def test_an_episode_that_fails_names_owner_and_cause_and_survives_the_store(cause: str, tmp_path: Path) -> None:
    episode = Episode("t", "f", "")
    episode.fail(cause, "why")
    owner = RULES[cause].owner
    assert (episode.owner, episode.cause) == (owner, cause)
    assert episode.status == ("finished" if owner == "harness" else "unscorable") and not episode.solved
    with RunStore.open(tmp_path) as store:
        run = store.begin_run("c", {}, split="search")
        store.add_episode(run, episode.summary(), [])
        again = Episode.from_summary(store.episodes(run)[0])
    assert (again.owner, again.cause, again.reason, again.status) == (owner, cause, "why", episode.status)
    assert f"{owner}, {cause}: why" in repr(again)


def test_records_from_before_are_read() -> None:
    row = {**Episode("t", "f", "").summary(), "owner": "intervention"}
    del row["cause"]
    assert Episode.from_summary(row).owner == "harness"


@pytest.mark.parametrize("cause", [cause for cause, rule in RULES.items() if rule.owner in ("backbone", "task")])
def test_a_request_that_fails_ends_its_episode_only(cause: str) -> None:
    episode = one(Failing(BackboneError("no", cause=cause)))
    assert (episode.status, episode.owner, episode.cause, episode.reason) == (
        "unscorable", RULES[cause].owner, cause, "no",
    )  # fmt: skip


@pytest.mark.parametrize("cause", [cause for cause, rule in RULES.items() if rule.owner == "user"])
def test_what_only_the_user_can_put_right_stops(cause: str) -> None:
    with pytest.raises(BackboneError, match="no"):
        one(Failing(BackboneError("no", cause=cause)))


@pytest.mark.parametrize("what", [KeyError("x"), None, "text", Completion(None), 5])  # type: ignore[arg-type]
def test_a_backbone_that_breaks_is_named(what: Any) -> None:
    episode = one(Failing(what))
    assert (episode.status, episode.owner, episode.cause) == ("unscorable", "backbone", "broke")
    assert " at 0x" not in episode.reason
    assert "Failing" in episode.reason


def test_a_backbone_that_hangs_is_cut_off() -> None:
    episode = one(Failing(lambda: asyncio.sleep(60)), reply=0.05)
    assert (episode.status, episode.cause) == ("unscorable", "timeout")


@pytest.mark.parametrize(
    ("status", "told", "code", "cause"),
    [
        (400, "maximum context length is 4096 tokens", None, "context"),
        (400, "content management policy", None, "refused"),
        (400, "Unsupported parameter: 'seed'", None, "setup"),
        (401, "", None, "key"),
        (402, "", None, "quota"),
        (403, "", None, "key"),
        (403, "flagged by moderation", None, "refused"),
        (404, "", None, "model"),
        (413, "", None, "context"),
        (422, "bad", None, "refused"),
        (429, "", None, "busy"),
        (429, "", "insufficient_quota", "quota"),
        (451, "", None, "refused"),
        (500, "", None, "server"),
        (503, "", None, "server"),
        (529, "overloaded", None, "server"),
    ],
)
def test_http_errors_have_causes(status: int, told: str, code: str | None, cause: str) -> None:
    assert status_cause(status, told, code) == cause


class Hanging(CorridorWorld):
    """One task whose call never returns."""

    deadline = 0.2

    def __init__(self, call: str):
        super().__init__()
        self.call, self.never = call, threading.Event()

    def make(self) -> Any:
        world, env = self, super().make()
        original = getattr(env, self.call)

        def stuck(*given: Any, **named: Any) -> Any:
            if named.get("seed") == 2 or world.call in ("close",) or getattr(env, "bad", False):
                world.never.wait()
            return original(*given, **named)

        if self.call == "step":
            reset = env.reset
            env.reset = lambda **named: (setattr(env, "bad", named["seed"] == 2), reset(**named))[1]  # type: ignore[method-assign]
        setattr(env, self.call, stuck)
        return env


@pytest.mark.parametrize("call", ["reset", "step", "close"])
def test_an_environment_that_hangs_costs_one_episode(call: str) -> None:
    world = Hanging(call)
    try:
        found = played(world, always("right"))
        assert len(found) == 8
        lost = [(episode.task_id, episode.owner, episode.cause) for episode in found if episode.status == "unscorable"]
        assert lost == ([] if call == "close" else [("search-2", "environment", "hang")])
        assert len(played(CorridorWorld(), always("right"))) == 8, "later measurements in this kernel work"
    finally:
        world.never.set()


def test_make_that_hangs_or_raises_is_a_fault() -> None:
    class Stuck(CorridorWorld):
        deadline = 0.1

        def make(self) -> Any:
            never.wait()

    class Broken(CorridorWorld):
        def make(self) -> Any:
            raise OSError("no room")

    never = threading.Event()
    try:
        with pytest.raises(EnvironmentFault, match=r"make did not return within 0\.1 s"):
            run_sync(GuardedEnv.make(Stuck()))
    finally:
        never.set()
    assert {episode.cause for episode in played(Broken(), always("right"))} == {"crash"}


@pytest.mark.parametrize("deadline", [0, -1, "soon", True])
def test_a_deadline_is_a_number_of_seconds(deadline: Any) -> None:
    world = CorridorWorld()
    world.deadline = deadline  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="deadline"):
        Runner(world, always("right"))


class Odd(CorridorWorld):
    """Answers every step with something of its own."""

    def __init__(self, answer: Any):
        super().__init__()
        self.answer = answer

    def make(self) -> Any:
        env = super().make()
        env.step = lambda action: self.answer() if callable(self.answer) else self.answer  # type: ignore[method-assign]
        return env


class Mute:
    def __str__(self) -> str:
        raise ValueError("no words")


GOOD: Mapping[str, Any] = {"public": {}, "private": {"solved": False}}


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (None, "lie"),
        (("x", 0.0, False, GOOD), "lie"),
        (("x", float("nan"), False, False, GOOD), "lie"),
        (("x", "much", False, False, GOOD), "lie"),
        (("x", 0.0, False, False, None), "lie"),
        (("x", 0.0, False, False, {"public": 5, "private": {"solved": False}}), "lie"),
        (("x", 0.0, False, False, {"public": {"tools": 5}, "private": {"solved": False}}), "lie"),
        (("x", 0.0, False, False, {"public": {}, "private": {"solved": 1}}), "lie"),
        ((Mute(), 0.0, False, False, GOOD), "lie"),
        (lambda: next(iter(())), "crash"),
        (lambda: exec("raise SystemExit(3)"), "crash"),
        (lambda: exec("raise KeyboardInterrupt"), "crash"),
        (lambda: exec("raise BaseException('no')"), "crash"),
        (lambda: exec("def f(): f()\nf()"), "crash"),
    ],
)
def test_an_environment_that_lies_or_crashes_owns_it(answer: Any, cause: str) -> None:
    found = played(Odd(answer), always("right"))
    assert {(episode.owner, episode.cause, episode.status) for episode in found} == {
        ("environment", cause, "unscorable")
    }
    assert len(found) == 8 and all(episode.reason for episode in found)


def test_observations_that_are_no_text_or_huge_are_played() -> None:
    for observation in ({"a": object()}, 5, None, "x" * 5_000_000, "\ud800"):
        found = played(Odd((observation, 0.0, False, False, GOOD)), always("right"))
        assert {episode.status for episode in found} == {"finished"}


def test_an_environment_that_belongs_to_its_thread_is_played() -> None:
    class Sql(CorridorWorld):
        def make(self) -> Any:
            env = super().make()
            db, step = sqlite3.connect(":memory:"), env.step
            env.step = lambda action: (db.execute("SELECT 1"), step(action))[1]  # type: ignore[method-assign]
            env.close = db.close  # type: ignore[method-assign]
            return env

    assert all(episode.solved for episode in played(Sql(), always("right")))


def test_calls_wait_in_order_and_the_wait_does_not_count() -> None:
    calls, order = Calls(), []

    async def main() -> None:
        slow = [calls.run(lambda n=n: (time.sleep(0.1), order.append(n)), 0.5) for n in range(10)]  # type: ignore[misc]
        await asyncio.gather(*slow)

    asyncio.run(main())
    assert order == list(range(10))


def test_those_that_wait_behind_a_stuck_call_are_served() -> None:
    calls, never = Calls(), threading.Event()

    async def main() -> list[Any]:
        return await asyncio.gather(
            calls.run(never.wait, 0.2), calls.run(lambda: "served", 0.2), return_exceptions=True
        )

    try:
        stuck, served = asyncio.run(main())
    finally:
        never.set()
    assert isinstance(stuck, Overran) and served == "served"


def test_after_a_blocked_loop_the_next_work_gets_a_fresh_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backbone that blocks the loop: an Interrupt leaves it behind."""
    never = threading.Event()
    monkeypatch.setattr(loops, "CLEANUP_SECONDS", 0.1)

    async def blocks() -> None:
        never.wait()

    def interrupt() -> None:
        raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            run_sync(blocks(), interrupt)
        assert all(episode.solved for episode in played(CorridorWorld(), always("right")))
    finally:
        never.set()
