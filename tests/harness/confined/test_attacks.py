"""No attack of a hostile intervention succeeds, and each is charged to the harness that brought it."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sqlite3
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.harness import Pipeline, load_harness
from harnesslab.harness.confined import box, syscalls, walls
from harnesslab.rollout.env import Task
from harnesslab.rollout.episode import play
from harnesslab.rollout.owners import owner_of
from harnesslab.rollout.records import Episode
from tests.canary import contents
from tests.harness.confined.attacks import ATTACKS, LOADING
from tests.worlds import Corridor

KEY = "sk-planted-0123456789abcdef"
GOLD = "the-gold-answer-4711"
BASE = {"harness.toml": b'name = "t"\n'}
TASK = Task("secret-task-id", "gate", "odd", seed=1, options={"length": 2})

posix = pytest.mark.skipif(os.name != "posix", reason="confined processes need Linux or macOS")
pytestmark = [posix, pytest.mark.timeout(120)]


class Guarded(Corridor):
    """A corridor whose instance knows a gold answer."""

    gold = GOLD


def attack(source: str) -> tuple[Episode, list[int]]:
    """Play an episode with the file as an intervention; the processes that it had."""
    pipeline = Pipeline(load_harness({**BASE, "action/evil.py": source.encode()}))
    pids: list[int] = []
    start = box._start

    def noted(allowed: Any) -> Any:
        started = start(allowed)
        pids.append(started.process.pid)
        return started

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box, "_start", noted)
        episode = asyncio.run(
            play(Guarded(), TASK, pipeline, hl.LLM.scripted(lambda messages: "Action: right"), budget=4)
        )
    return episode, pids


def of_session(pid: int) -> list[int]:
    """Living processes of the session that a child has started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == pid and fields[0] != "Z":
            found.append(int(place.name))
    return found


def all_gone(pids: list[int]) -> bool:
    """Whether they are gone, as soon as the kernel has worked through the namespace."""
    until = time.monotonic() + 5
    while any(map(of_session, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(map(of_session, pids))


@pytest.fixture
def loot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Things worth stealing; the deadlines are short."""
    monkeypatch.setattr(box, "ALLOWED", replace(box.ALLOWED, hook_s=1.0, load_s=1.0))
    monkeypatch.setenv("HARNESSLAB_TEST_KEY", KEY)
    (tmp_path / "key.txt").write_text(KEY)
    with sqlite3.connect(tmp_path / "lab.db") as db:
        db.execute("create table t (x)")
        db.execute("insert into t values (?)", (GOLD,))
    db.close()
    server, unix = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
    unix.bind(str(tmp_path / "s"))
    unix.listen()
    listening = [server, unix]
    yield {
        "key": str(tmp_path / "key.txt"),
        "db": str(tmp_path / "lab.db"),
        "folder": str(tmp_path),
        "unix": str(tmp_path / "s"),
        "port": server.getsockname()[1],
        "pid": os.getpid(),
        "packages": sysconfig.get_path("purelib"),
    }
    for each in listening:
        each.setblocking(False)
        with pytest.raises(BlockingIOError):
            each.accept()
        each.close()


def charged(episode: Episode) -> bool:
    return owner_of(episode.cause) == "harness" and not episode.solved and "action/evil" in episode.reason


def assert_nothing_leaked(episode: Episode) -> None:
    said = repr([step.to_json() for step in episode.steps]) + repr(episode.summary())
    for secret in (KEY, GOLD):
        assert secret not in said
    assert len(episode.reason) < 2_000


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_succeeds(name: str, loot: dict[str, Any], tmp_path: Path) -> None:
    if walls.bubblewrap(box.ALLOWED.files_mb) is None:
        pytest.skip("needs bubblewrap")
    before = contents(tmp_path)
    source = f"LOOT = {loot!r}\ndef realize(context, proposal):\n    {ATTACKS[name]}\n    raise RuntimeError('went through')\n"
    episode, pids = attack(source)
    assert contents(tmp_path) == before
    assert_nothing_leaked(episode)
    assert charged(episode), (episode.cause, episode.reason)
    assert "went through" not in episode.reason or name in TOOTHLESS
    assert pids and all_gone(pids)


TOOTHLESS: set[str] = set()
"""Attacks that the kernel lets through since they reach nothing but the attacker's own process."""


def test_there_are_enough() -> None:
    assert len(ATTACKS) + len(LOADING) >= 30


@pytest.mark.parametrize("name", LOADING)
def test_no_attack_while_it_is_loaded(name: str, loot: dict[str, Any], tmp_path: Path) -> None:
    if walls.bubblewrap(box.ALLOWED.files_mb) is None:
        pytest.skip("needs bubblewrap")
    before = contents(tmp_path)
    episode, pids = attack(f"{LOADING[name]}\ndef realize(context, proposal): pass\n")
    assert contents(tmp_path) == before and charged(episode), (episode.cause, episode.reason)
    assert_nothing_leaked(episode)
    assert pids and all_gone(pids)


REAL = ["a key in the environment", "the parent's environ", "a key on disk", "the database", "a symbolic link", "installed packages", "gold through frames"]  # fmt: skip


@pytest.mark.parametrize("name", REAL)
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_the_same_attack_succeeds_on_code_in_this_process(
    name: str, loot: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the tests above would show nothing."""
    monkeypatch.chdir(tmp_path)
    source = f"LOOT = {loot!r}\ndef realize(context, proposal):\n    {ATTACKS[name]}\n"
    pipeline = Pipeline(load_harness({**BASE, "action/evil.py": source.encode()}, unconfined=True))
    episode = asyncio.run(play(Guarded(), TASK, pipeline, hl.LLM.scripted(lambda messages: "Action: right"), budget=1))
    assert episode.cause == "" and episode.fired == {"action/evil": 1} and episode.steps[0].action not in ("right", "")


HELD_BY_LIMITS = [
    "a key in the environment", "any variable", "a TCP socket", "a UDP socket", "a Unix socket", "io_uring", "a fork bomb", "a subprocess",
    "another program", "a daemon", "killing the parent", "stopping the parent", "killing everybody", "ptrace", "reading the parent's memory",
    "a new namespace", "higher limits", "a file of 10 GB", "an endless loop", "sleeping", "much memory at once", "memory bit by bit", "endless printing", "a huge answer",
    "leaving", "a crash", "garbage on the socket", "an answer ahead", "a reward", "gold through gc", "the task's id", "a pickle",
]  # fmt: skip


@pytest.mark.parametrize("name", HELD_BY_LIMITS)
@pytest.mark.filterwarnings("ignore::harnesslab.errors.WeakConfinement")
@pytest.mark.skipif(not syscalls.program(), reason="needs a filter of system calls")
def test_what_limits_alone_hold(
    name: str, loot: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walls, "bubblewrap", lambda files_mb: None)
    source = f"LOOT = {loot!r}\ndef realize(context, proposal):\n    {ATTACKS[name]}\n    raise RuntimeError('went through')\n"
    before = contents(tmp_path)
    episode, pids = attack(source)
    assert contents(tmp_path) == before and charged(episode), (episode.cause, episode.reason)
    assert "went through" not in episode.reason
    assert_nothing_leaked(episode)
    assert pids and all_gone(pids)


CAUSES = {
    "an endless loop": "stalled", "sleeping": "stalled", "leaving": "died", "a crash": "died", "a huge answer": "nonsense",
    "garbage on the socket": "nonsense", "a reward": "nonsense", "another type": "nonsense", "the task's id": "intervention",
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_faults_are_typed(name: str, loot: dict[str, Any]) -> None:
    episode, _ = attack(f"LOOT = {loot!r}\ndef realize(context, proposal):\n    {ATTACKS[name]}\n")
    assert (episode.cause, episode.owner) == (CAUSES[name], "harness")
    assert episode.steps == [] or episode.steps[-1].raw


def play_twice(files: dict[str, str]) -> list[Episode]:
    """Two episodes of one pipeline, with a backbone that says what the file's action is."""
    pipeline = Pipeline(load_harness({**BASE, **{path: text.encode() for path, text in files.items()}}))
    backbone = hl.LLM.scripted(lambda messages: "Action: left")
    return [asyncio.run(play(Corridor(), TASK, pipeline, backbone, budget=3)) for _ in range(2)]


COUNTING = {
    "a global": "n = 0\ndef realize(context, proposal):\n    global n\n    n += 1\n    return {**proposal, 'action': f'{n}'}\n",
    "a patched module": "import json\ndef realize(context, proposal):\n    json.n = getattr(json, 'n', 0) + 1\n    return {**proposal, 'action': f'{json.n}'}\n",
    "a file": "import os\ndef realize(context, proposal):\n    open('kept', 'a').write('x')\n    return {**proposal, 'action': f\"{os.path.getsize('kept')}\"}\n",
    "a default": "def realize(context, proposal, seen=[]):\n    seen.append(1)\n    return {**proposal, 'action': f'{len(seen)}'}\n",
}


@pytest.mark.parametrize("kept", COUNTING)
def test_nothing_survives_the_episode(kept: str) -> None:
    first, second = play_twice({"action/count.py": COUNTING[kept]})
    assert [step.action for step in first.steps] == [step.action for step in second.steps] == ["1", "2", "3"]


def test_one_intervention_cannot_touch_another() -> None:
    patching = "import json, os\njson.mine = 1\nopen('/tmp/mine', 'w').write('x')\ndef realize(context, proposal): return None\n"
    looking = "import json, os\ndef realize(context, proposal):\n    return {**proposal, 'action': f\"{hasattr(json, 'mine')} {os.path.exists('/tmp/mine')}\"}\n"
    if walls.bubblewrap(box.ALLOWED.files_mb) is None:
        pytest.skip("needs bubblewrap")
    for episode in play_twice({"action/a.py": patching, "action/b.py": looking}):
        assert {step.action for step in episode.steps} == {"False False"}


def test_an_abandoned_child_ends(loot: dict[str, Any]) -> None:
    pipeline = Pipeline(load_harness({**BASE, "action/x.py": b"def realize(context, proposal): pass\n"})).episode()
    running: Any = pipeline.harness.interventions[0]
    pid = running._box._future.result().process.pid
    assert of_session(pid)
    del running, pipeline
    gc.collect()
    assert all_gone([pid])


def test_a_run_in_a_loop_of_ones_own_has_its_processes_until_it_is_done() -> None:
    counting = COUNTING["a default"].encode()
    agent = hl.Agent(load_harness({**BASE, "action/count.py": counting}), lambda messages: "Action: x", budget=3)
    runs = [agent.start("Go on."), agent.start("Go on.")]
    assert [[run.act("Here.") for _ in range(4)] for run in runs] == [["1", "2", "3", None]] * 2
    pids = [run.pipeline.harness.interventions[0]._box._future.result().process.pid for run in runs]  # type: ignore[attr-defined]
    assert all_gone(pids)
