"""The loop thread: works under a running loop, passes errors on, and an Interrupt cancels cleanly."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap

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
