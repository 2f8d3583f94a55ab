"""The random control, scripts and the constant reply."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from harnesslab.errors import BackboneError
from harnesslab.llm import LLM, Backbone, Request

MESSAGES = ({"role": "user", "content": "You see an apple and a pear."},)


def texts(backbone: Backbone, requests: list[Request], repeat: int = 0) -> list[str]:
    async def all_of_them() -> list[str]:
        return [(await backbone.complete(request, repeat=repeat)).text for request in requests]

    return asyncio.run(all_of_them())


def test_picks_uniformly_among_choices() -> None:
    requests = [Request(MESSAGES, choices=("a", "b", "c", "d"), seed=number) for number in range(2000)]
    counts = Counter(texts(LLM.random(0), requests))
    # Chi-square with 3 degrees of freedom: 16.3 is exceeded once in a thousand seeds, and this seed is fixed.
    assert sum((counts[choice] - 500) ** 2 / 500 for choice in "abcd") < 16.3


def test_choices_come_before_options_and_options_before_words() -> None:
    assert texts(LLM.random(1), [Request(MESSAGES, choices=("a",), options=("b",))]) == ["a"]
    assert texts(LLM.random(1), [Request(MESSAGES, options=("b",))]) == ["b"]
    (words,) = texts(LLM.random(1), [Request(MESSAGES)])
    assert set(words.split()) <= {"You", "see", "an", "apple", "and", "a", "pear"} and words
    assert texts(LLM.random(1), [Request(())]) == [""]


def test_the_pick_depends_on_seed_request_and_repeat_alone() -> None:
    requests = [Request(MESSAGES, choices=tuple("abcdefgh"), seed=number) for number in range(20)]
    first = texts(LLM.random(3), requests)
    assert texts(LLM.random(3), requests) == first
    assert texts(LLM.random(3), requests[::-1]) == first[::-1]
    assert texts(LLM.random(4), requests) != first and texts(LLM.random(3), requests, repeat=1) != first
    assert LLM.random(3).identity != LLM.random(4).identity and LLM.random(3).constrains


def test_scripts() -> None:
    assert texts(LLM.scripted(lambda messages: messages[-1]["content"].upper()), [Request(MESSAGES)]) == [
        "YOU SEE AN APPLE AND A PEAR."
    ]
    listed = LLM.scripted(["a", "b"])
    assert texts(listed, [Request(MESSAGES)] * 2) == ["a", "b"]
    with pytest.raises(BackboneError, match="ended after 2"):
        texts(listed, [Request(MESSAGES)])


def test_null_costs_next_to_nothing() -> None:
    null, request = LLM.null("look"), Request(MESSAGES)

    async def many() -> float:
        best = float("inf")
        for _ in range(100):
            begun = time.perf_counter()
            for _ in range(100):
                await null.complete(request)
            best = min(best, (time.perf_counter() - begun) / 100)
        return best

    # 0.3 microseconds were measured; the bound leaves room for a slow and busy core.
    assert asyncio.run(many()) < 5e-6
    assert texts(null, [request]) == ["look"]
