"""The loop thread: works under a running loop, passes errors on, and an Interrupt cancels cleanly."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from harnesslab.rollout.loop import run_async, run_sync


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_it_runs_without_and_under_a_running_loop() -> None:
    assert run_sync(answer(3)) == 3

    async def cell() -> tuple[int, int]:
        # What a Jupyter cell does: the main thread's loop is running already.
        return run_sync(answer(4)), await run_async(answer(5))

    assert asyncio.run(cell()) == (4, 5)


def test_errors_come_through_and_the_caller_is_ticked() -> None:
    async def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        run_sync(fail())
    ticks: list[int] = []

    async def slow() -> str:
        while len(ticks) < 2:
            await asyncio.sleep(0.01)
        return "done"

    assert run_sync(slow(), lambda: ticks.append(1)) == "done"


def test_calling_it_from_its_own_loop_says_so() -> None:
    async def inner() -> None:
        run_sync(answer(1))

    with pytest.raises(RuntimeError, match="own loop"):
        run_sync(inner())


def test_an_interrupt_cancels_and_waits_for_the_clean_up() -> None:
    program = textwrap.dedent("""
        import asyncio
        from harnesslab.rollout.loop import run_sync
        async def work():
            try:
                print("started", flush=True)
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)
                print("cleaned", flush=True)
        try:
            run_sync(work())
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert out == "cleaned\ninterrupted\n"


def test_an_interrupt_while_the_work_is_handed_over_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    hand_over = asyncio.run_coroutine_threadsafe

    def interrupted(*given: Any) -> Any:
        hand_over(*given)
        raise KeyboardInterrupt

    async def work() -> None:
        begun.append("work")

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
    coroutine = work()
    with pytest.raises(KeyboardInterrupt):
        run_sync(coroutine)
    monkeypatch.undo()
    run_sync(asyncio.sleep(0))  # whatever was handed over before has had its turn
    assert begun == [] and coroutine.cr_frame is None, "it was closed and never began"


def test_an_interrupt_in_the_first_moment_waits_for_the_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("cleaned")

    def interrupted(*_: Any, **__: Any) -> Any:
        assert begun.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr("harnesslab.rollout.loop.concurrent.futures.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sync(work())
    assert done == ["cleaned"]
