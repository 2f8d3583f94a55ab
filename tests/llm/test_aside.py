"""A backbone of a user's own that blocks: the deadline holds, and the others go on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BackboneError
from harnesslab.llm.types import Completion, Request
from harnesslab.rollout.agent import Limits, complete

REQUEST = Request(({"role": "user", "content": "x"},))


class Own:
    """A user's backbone; ``complete`` is a plain function where ``plain``."""

    constrains = False
    identity = {"kind": "own", "model": "own"}  # noqa: RUF012 - as a user would write it

    def __init__(self, block: threading.Event | None = None, error: BaseException | None = None):
        self.block, self.error, self.threads = block, error, set[str]()

    async def complete(self, request: Request, *, repeat: int = 0) -> Any:
        self.threads.add(threading.current_thread().name)
        if self.block is not None:
            self.block.wait(60)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return Completion("Action: look")


def ask(backbone: Any, seconds: float = 20.0) -> Completion:
    return asyncio.run(complete(backbone, REQUEST, 0, Limits(reply=seconds)))


@pytest.mark.parametrize("recorded", [False, True])
def test_a_blocking_backbone_is_ended_by_the_deadline(recorded: bool, tmp_path: Any) -> None:
    released = threading.Event()
    own = Own(released)
    backbone: Any = hl.Cached(own, hl.Recording.open(tmp_path / "r.jsonl")) if recorded else own
    try:
        with pytest.raises(BackboneError, match=r"did not reply within 0\.2 s") as caught:
            ask(backbone, 0.2)
        assert caught.value.cause == "timeout"
        assert ask(Own()).text == "Action: look", "the next call gets a fresh loop"
    finally:
        released.set()


def test_other_work_goes_on_while_a_backbone_blocks() -> None:
    released = threading.Event()

    async def both() -> Completion:
        waiting = asyncio.ensure_future(complete(Own(released), REQUEST, 0, Limits(reply=20)))
        await asyncio.sleep(0)
        released.set()  # reached only because this loop is free
        return await waiting

    assert asyncio.run(both()).text == "Action: look"


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), BackboneError("busy", cause="busy")])
def test_what_it_raises_comes_through(error: BaseException) -> None:
    with pytest.raises(BackboneError):
        ask(Own(error=error))
    assert ask(Own()).text == "Action: look"


def test_all_calls_share_one_loop() -> None:
    own = Own()
    ask(own)
    ask(own)
    assert own.threads == {"harnesslab-backbone"}
