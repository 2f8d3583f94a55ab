"""The guard: what an environment returns is checked and bounded, whatever it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harnesslab.errors import EnvironmentFault
from harnesslab.rollout.guard import OBSERVATION_LIMIT, GuardedEnv


class Odd:
    """Returns what it is told to."""

    def __init__(self, observation: Any = "Room", reward: Any = 0.0, public: Any = None, private: Any = None):
        self.observation, self.reward = observation, reward
        self.info = {"public": public or {}, "private": {"solved": False, **(private or {})}}

    def reset(self, **_: Any) -> Any:
        return self.observation, self.info

    def step(self, action: Any) -> Any:
        return self.observation, self.reward, False, False, self.info

    def close(self) -> None: ...


def reset(env: Odd) -> Any:
    return asyncio.run(GuardedEnv(env).reset(seed=0, options={}))


def step(env: Odd) -> Any:
    return asyncio.run(GuardedEnv(env).step("left"))


@pytest.mark.parametrize("call", [reset, step])
@pytest.mark.parametrize(
    "public, words",
    [
        ({"admissible": 5}, r"\['admissible'\] is a int"),
        ({"admissible": "left"}, r"\['admissible'\] is a str"),
        ({"tools": {"name": "x"}}, "tools.*cannot be used"),
        ({"tools": ["x"]}, "tools.*cannot be used"),
        ({"tools": [{"function": "x"}]}, "tools.*cannot be used"),
        ({"tools": [{"function": {"name": 7}}]}, "tools.*cannot be used"),
    ],
)
def test_public_parts_of_another_shape(call: Callable[[Odd], Any], public: dict[str, Any], words: str) -> None:
    with pytest.raises(EnvironmentFault, match=words):
        call(Odd(public=public))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400, "much", None])
def test_numbers_that_are_none(number: Any) -> None:
    for env in (Odd(reward=number), Odd(private={"progress": number})):
        with pytest.raises(EnvironmentFault, match="not a number"):
            step(env)


@pytest.mark.parametrize("name", ["terminated", "truncated"])
@pytest.mark.parametrize("word", ["False", "no", "", b"0"])
def test_a_word_is_no_flag(name: str, word: Any) -> None:
    class Wordy(Odd):
        def step(self, action: Any) -> Any:
            observation, reward, _, _, info = super().step(action)
            return observation, reward, *((word, False) if name == "terminated" else (False, word)), info

    with pytest.raises(EnvironmentFault, match=f"for {name}; return True or False"):
        step(Wordy())


def test_texts_are_bounded_and_can_be_written() -> None:
    seen = reset(Odd("\ud800" + "é" * OBSERVATION_LIMIT, public={"instruction": "Go \udfff", "admissible": ["\ud800"]}))
    assert seen.observation.startswith("?é") and seen.observation.endswith("[1 characters cut]")
    assert (seen.instruction, seen.admissible) == ("Go ?", ("?",))


def test_blocking_environments_are_called_at_once() -> None:
    import threading

    together = threading.Barrier(20, timeout=20)

    class Slow(Odd):
        threaded = True

        def step(self, action: Any) -> Any:
            together.wait()
            return super().step(action)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(GuardedEnv(Slow()).step("left") for _ in range(20)))

    assert len(asyncio.run(all_of_them())) == 20
