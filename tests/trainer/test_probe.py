"""The probe: new seeds, placebos, one request asked again, and what it recommends."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import ConfigError
from harnesslab.llm import Completion, Request
from harnesslab.trainer.probe import PLACEBOS


class Noisy(hl.Backbone):
    """Walks right or left by a hash: of the ``words`` of the request, of its ``seed``, of what was asked before (``cache``), or of how many ask at once."""

    def __init__(self, by: str, greedy: bool):
        self.by, self.greedy, self.last, self.busy = by, greedy, "", 0

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"model": self.by, "sampling": {"temperature": 0 if self.greedy else 1}}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        words = repr(request.messages)
        self.busy += 1
        await asyncio.sleep(0)
        key = {
            "words": words,
            "seed": f"{request.seed}",
            "cache": "warm" if self.last in ("", words) else "cold",
            "busy": str(self.busy),
        }[self.by]
        self.last = words
        self.busy -= 1
        odd = hashlib.sha256(key.encode()).digest()[0] % 2
        # The task is solved within the budget or not by the first step alone.
        return Completion("Action: right" if odd else "Action: left", model=self.by, prompt_tokens=1)


def probe(lab: hl.Lab, by: str, greedy: bool, **options: Any) -> Any:
    trainer = hl.Trainer(lab=lab, llm=Noisy(by, greedy), settings={"progress": False, "budget": 4, "workers": 1})
    return trainer.probe(**options)


def test_greedy_decoding_hides_noise_that_a_placebo_shows(open_lab: Callable[..., hl.Lab]) -> None:
    found = probe(open_lab(), "words", greedy=True, placebos=list(PLACEBOS))
    assert found.flips == 0 and list(found.placebo) == list(PLACEBOS)
    assert max(found.placebo.values()) > 0 and found.floor > found.noise == 0.0
    assert found.minimum is None or found.minimum > 5
    assert "placebo (text):" in repr(found) and "recommended: AnytimeTest()" in repr(found)


def test_a_a_draws_new_seeds(open_lab: Callable[..., hl.Lab]) -> None:
    found = probe(open_lab(), "seed", greedy=False)
    assert found.flips > 0
    assert found.replies["alone"] == found.replies["after another"] == found.replies["at once"] == 1


def test_a_prefix_cache_and_concurrency_show_in_one_request(open_lab: Callable[..., hl.Lab]) -> None:
    cache = probe(open_lab("a"), "cache", greedy=True).replies
    assert (
        cache["alone"] <= 2 and cache["after another"] >= 1 and cache != {"alone": 1, "after another": 1, "at once": 1}
    )
    busy = probe(open_lab("b"), "busy", greedy=True).replies
    assert busy["alone"] == busy["after another"] == 1 and busy["at once"] == 2


def test_a_calm_backbone_needs_a_small_panel_and_a_noisy_one_more(open_lab: Callable[..., hl.Lab]) -> None:
    llm = hl.LLM.scripted(lambda messages: "Action: left", name="calm")
    calm = hl.Trainer(lab=open_lab("c"), llm=llm, settings={"progress": False}).probe()
    assert (calm.flips, calm.floor, calm.placebo) == (0, 0.0, {"text": 0}) and calm.panel == 50
    noisy = probe(open_lab("n"), "seed", greedy=False)
    assert noisy.panel is None or noisy.panel > calm.panel


def test_an_unknown_placebo_is_named(open_lab: Callable[..., hl.Lab]) -> None:
    with pytest.raises(ConfigError, match="there is no placebo 'sugar'; there are text, layout, order, words"):
        probe(open_lab(), "seed", True, placebos=["sugar"])


@pytest.mark.parametrize("name", list(PLACEBOS))
@pytest.mark.parametrize("text", ["", "One line.", "Two.\nLines.", "A part.\n\nAnother.\nEnd."])
def test_a_placebo_keeps_every_line(name: str, text: str) -> None:
    changed = PLACEBOS[name](text)
    assert {line for line in text.splitlines() if line} <= set(changed.splitlines())
