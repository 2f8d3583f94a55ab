"""LLM.local: on the real SmolLM2 where it is there, and everything that must work without it."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import BackboneError, ConfigError, ReplayMiss
from harnesslab.llm import LLM, Recording, Request, embedded
from harnesslab.llm.embedded import Engine, Settings, close_engines, engine, threads_from_environment

APPLE = Request(
    ({"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "You see a red apple. Color?"}),
    max_tokens=8,
)
STORY = Request(({"role": "user", "content": "Tell a long story about a cat."},), max_tokens=400)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_THREADS", "1")


@pytest.mark.model
def test_answers_the_same_at_temperature_zero(smollm: Path) -> None:
    llm = LLM.local("smollm2-135m")

    async def twice() -> list[Any]:
        return [await llm.complete(APPLE), await llm.complete(APPLE)]

    first, second = asyncio.run(twice())
    assert first.text and first.text == second.text
    assert first.prompt_tokens > 10 and 0 < first.completion_tokens <= 8 and first.seconds > 0
    assert first.model == smollm.name and "/" not in json.dumps(llm.identity["model"])
    assert len(llm.identity["sha256"]) == 64


@pytest.mark.model
def test_choices_are_enforced_while_decoding(smollm: Path) -> None:
    llm = LLM.local("smollm2-135m")
    choices = ('take "red" apple', "öffne das Fenster", "go to kitchen 12", "go to kitchen 1", "back\\slash")
    assert llm.constrains
    for number in range(len(choices)):
        request = Request(STORY.messages, choices=choices[number:], max_tokens=1)
        done = asyncio.run(llm.complete(request))
        assert done.text in choices[number:] and done.finish_reason == "stop"


@pytest.mark.model
def test_repeats_are_distinct_and_repeatable(smollm: Path) -> None:
    llm = LLM.local("smollm2-135m", temperature=1.5, max_tokens=12)
    request = Request(STORY.messages)

    async def draw(repeat: int) -> str:
        return (await llm.complete(request, repeat=repeat)).text

    first = [asyncio.run(draw(repeat)) for repeat in range(3)]
    assert len(set(first)) == 3
    assert asyncio.run(draw(1)) == first[1]


@pytest.mark.model
def test_a_cancelled_request_ends_at_the_next_token(smollm: Path) -> None:
    llm = LLM.local("smollm2-135m")

    async def interrupted() -> float:
        await llm.complete(APPLE)
        task = asyncio.create_task(llm.complete(STORY))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        begun = time.perf_counter()
        await llm.complete(APPLE)  # waits for its turn, which comes only when the story has ended
        return time.perf_counter() - begun

    assert asyncio.run(interrupted()) < 5


@pytest.mark.model
def test_the_event_loop_goes_on_while_the_model_works(smollm: Path) -> None:
    llm = LLM.local("smollm2-135m")

    async def beats() -> int:
        task, count = asyncio.create_task(llm.complete(Request(STORY.messages, max_tokens=20))), 0
        while not task.done():
            await asyncio.sleep(0.01)
            count += 1
        return count

    assert asyncio.run(beats()) > 10


@pytest.mark.model
def test_a_request_beyond_the_context_says_what_to_do(smollm: Path) -> None:
    llm = LLM.local("smollm2-135m", context=256)
    with pytest.raises(BackboneError, match=r"does not fit the context.*256 tokens.*larger context"):
        asyncio.run(llm.complete(Request(({"role": "user", "content": "word " * 500},))))


@pytest.mark.model
def test_one_engine_for_equal_settings(smollm: Path) -> None:
    settings = Settings(smollm, 1, 512, False)
    loaded = engine(settings)
    assert engine(Settings(smollm, 1, 512, False)) is loaded
    close_engines()
    assert engine(settings) is not loaded


@pytest.mark.model
def test_exits_cleanly_with_a_reply_in_flight(smollm: Path) -> None:
    program = f"""
import asyncio
from harnesslab.llm import LLM, Request
async def main():
    llm = LLM.local({str(smollm)!r}, threads=1)
    await llm.complete(Request(({{"role": "user", "content": "hi"}},), max_tokens=2))
    asyncio.create_task(llm.complete(Request(({{"role": "user", "content": "a long story"}},), max_tokens=2000)))
    await asyncio.sleep(0.3)
    print("done", flush=True)
asyncio.run(main())
"""
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert time.perf_counter() - begun < 30


@pytest.mark.model
def test_replays_without_model_and_package(smollm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    live = LLM.local("smollm2-135m", cache=path)
    first, identity = asyncio.run(live.complete(APPLE)), live.identity

    monkeypatch.setenv("HARNESSLAB_MODELS", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    replayed = LLM.local("smollm2-135m", cache=Recording.open(path, "replay"))
    again = asyncio.run(replayed.complete(APPLE))
    assert (again.text, again.body, again.cached) == (first.text, first.body, True)
    assert replayed.identity == identity and replayed.constrains
    with pytest.raises(ReplayMiss, match="smollm2-135m"):
        asyncio.run(replayed.complete(STORY))


def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra 'local' is not installed")
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"no model")
    with pytest.raises(BackboneError, match=r"bad.gguf.*whole GGUF"):
        asyncio.run(LLM.local(path).complete(APPLE))


def test_an_absent_file_and_package_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackboneError, match=r"model file .* does not exist"):
        asyncio.run(LLM.local(tmp_path / "none.gguf").complete(APPLE))
    (tmp_path / "some.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(BackboneError, match=r"pip install 'jupyter-harnesslab\[local\]'"):
        asyncio.run(LLM.local(tmp_path / "some.gguf").complete(APPLE))


def test_what_would_change_the_numbers_is_off(tmp_path: Path) -> None:
    xllamacpp = pytest.importorskip("xllamacpp", reason="the extra 'local' is not installed")
    parameters = embedded._parameters(xllamacpp, Settings(tmp_path / "x.gguf", 1, 512, False), 1)
    assert parameters.flash_attn_type == xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    assert (parameters.cache_prompt, parameters.cache_ram_mib, parameters.n_parallel) == (False, 0, 1)
    assert parameters.hostnames == ["127.0.0.1"] and len(parameters.api_keys[0]) > 20


def test_goes_to_another_process_without_the_model(tmp_path: Path) -> None:
    llm = LLM.local(tmp_path / "x.gguf", temperature=0.5)
    other = pickle.loads(pickle.dumps(llm))
    assert other.spec == llm.spec and other.body(APPLE) == llm.body(APPLE)


@pytest.mark.parametrize("value", ["0", "-1", "two"])
def test_a_wrong_number_of_threads_is_told(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESSLAB_THREADS", value)
    with pytest.raises(ConfigError, match="HARNESSLAB_THREADS"):
        threads_from_environment()
    with pytest.raises(ConfigError, match="threads=0"):
        LLM.local("smollm2-135m", threads=0)


class FakeEngine(Engine):
    """Takes one second for the probe, or what ``seconds`` says of its number of threads."""

    seconds: dict[int, float] = {}  # noqa: RUF012
    closed: list[int] = []  # noqa: RUF012

    def __init__(self, settings: Settings, threads: int):
        self.threads = threads

    def generate(self, body: dict[str, Any], stop: threading.Event) -> tuple[dict[str, Any], float]:
        return {"choices": [1]}, self.seconds[self.threads]

    def close(self) -> None:
        self.closed.append(self.threads)


@pytest.mark.parametrize(("alone", "together", "chosen"), [(1.0, 0.6, 4), (1.0, 20.0, 1)])
def test_threads_are_measured_then_chosen(
    alone: float, together: float, chosen: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HARNESSLAB_THREADS")
    monkeypatch.setattr(embedded, "Engine", FakeEngine)
    monkeypatch.setattr(embedded, "usable_cores", lambda: 4)
    monkeypatch.setattr(FakeEngine, "seconds", {1: alone, 4: together})
    monkeypatch.setattr(FakeEngine, "closed", [])
    loaded = embedded._load(Settings(tmp_path / "x.gguf", None, 512, False))
    assert loaded.threads == chosen and FakeEngine.closed == [5 - chosen]
