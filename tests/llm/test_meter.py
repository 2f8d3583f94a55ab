"""The meter: what is counted, and that it stops."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from harnesslab.errors import BudgetExceeded
from harnesslab.llm import Completion, Meter, Price, Request
from harnesslab.llm.meter import Usage

REPLY = Completion("x", prompt_tokens=100, completion_tokens=10, model="gpt-x-2026-01", seconds=2.0)
PRICES = {"gpt": Price(100.0, 100.0), "gpt-x": Price(1.0, 10.0)}


class Backbone:
    constrains = True
    identity: dict[str, Any] = {"model": "b"}  # noqa: RUF012

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        self.calls += 1
        await asyncio.sleep(0)
        return REPLY


def test_counts_by_role_and_prices_by_the_longest_name() -> None:
    meter = Meter(PRICES)
    meter.count(REPLY)
    meter.count(REPLY, "proposer")
    meter.count(Completion("x", prompt_tokens=9, cached=True, seconds=3.0))
    each = Usage(1, 0, 100, 10, 2.0, pytest.approx(2e-4))
    assert meter.usage("proposer") == each
    assert meter.usage("agent") == Usage(1, 1, 100, 10, 2.0, pytest.approx(2e-4))
    assert meter.usage() == Usage(2, 1, 200, 20, 4.0, pytest.approx(4e-4))
    assert "proposer" in repr(meter) and ">proposer</td>" in meter._repr_html_()


def test_html_is_escaped() -> None:
    meter = Meter()
    meter.count(REPLY, "<script>")
    assert "<script>" not in meter._repr_html_()


@pytest.mark.parametrize(
    "limit", [{"max_calls": 3}, {"max_tokens": 330}, {"max_seconds": 6.0}, {"max_money": 6e-4 - 1e-9}]
)
def test_stops_hard_at_each_limit(limit: dict[str, Any]) -> None:
    backbone, meter = Backbone(), Meter(PRICES, **limit)
    metered = meter.wrap(backbone)

    async def run() -> None:
        while True:
            await metered.complete(Request(()))

    with pytest.raises(BudgetExceeded, match="budget exhausted"):
        asyncio.run(run())
    assert backbone.calls == 3 == meter.usage().calls


def test_calls_at_the_same_time_do_not_overstep() -> None:
    backbone = Backbone()
    metered = Meter(max_calls=5).wrap(backbone)

    async def run() -> list[Any]:
        return await asyncio.gather(*(metered.complete(Request(())) for _ in range(20)), return_exceptions=True)

    outcomes = asyncio.run(run())
    assert backbone.calls == 5
    assert sum(isinstance(one, BudgetExceeded) for one in outcomes) == 15


def test_a_call_that_fails_gives_its_place_back() -> None:
    class Failing(Backbone):
        async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
            raise OSError("no")

    meter = Meter(max_calls=1)
    with pytest.raises(OSError, match="no"):
        asyncio.run(meter.wrap(Failing()).complete(Request(())))
    asyncio.run(meter.wrap(Backbone()).complete(Request(())))
    assert meter.usage().calls == 1


def test_spend_raises_only_past_the_limit() -> None:
    meter = Meter(max_calls=2)
    meter.spend(REPLY)
    meter.spend(REPLY)
    with pytest.raises(BudgetExceeded):
        meter.spend(REPLY)
    with pytest.raises(BudgetExceeded):
        meter.check()


def test_a_money_limit_is_not_blind() -> None:
    meter = Meter(max_money=1.0)
    meter.count(Completion("x", prompt_tokens=5, model="Smol.Q4_1.gguf"))
    meter.check()
    meter.count(REPLY)
    with pytest.raises(BudgetExceeded, match="without a price"):
        meter.check()


def test_counts_from_many_threads() -> None:
    meter = Meter(PRICES)
    threads = [threading.Thread(target=lambda: [meter.count(REPLY) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.usage().calls == 2000
