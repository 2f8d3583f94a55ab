"""Recordings: replay equals what was recorded, misses explain themselves, nothing is lost."""

from __future__ import annotations

import asyncio
import gzip
import json
import multiprocessing
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnesslab.errors import BackboneError, ConfigError, ReplayMiss
from harnesslab.llm import LLM, Cached, Completion, Connection, Recording, Request
from harnesslab.llm.body import canonical, digest
from tests.llm.fake_openai import KEY, Answer, FakeOpenAI, reply


class Counting:
    """A backbone that numbers its replies."""

    constrains = False

    def __init__(self, name: str = "counting") -> None:
        self.calls = 0
        self.name = name

    @property
    def identity(self) -> dict[str, Any]:
        return {"kind": "test", "model": self.name}

    async def complete(self, request: Request, *, repeat: int = 0) -> Completion:
        self.calls += 1
        await asyncio.sleep(0)
        return Completion(f"reply {self.calls}", prompt_tokens=5, completion_tokens=2, model="m", seconds=1.5)


def user(text: str, **fields: Any) -> Request:
    return Request(({"role": "system", "content": "Act."}, {"role": "user", "content": text}), **fields)


def ask(backbone: Any, request: Request, repeat: int = 0) -> Completion:
    return asyncio.run(backbone.complete(request, repeat=repeat))


def test_replays_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    live = Cached(Counting(), Recording.open(path, "record"))
    first = ask(live, user("a"))
    assert not first.cached and ask(live, user("a")).cached
    again = ask(Cached(Counting(), Recording.open(path, "replay")), user("a"))
    assert again.cached
    assert (again.text, again.prompt_tokens, again.completion_tokens, again.model, again.seconds) == (
        "reply 1", 5, 2, "m", 1.5,
    )  # fmt: skip


def test_repeats_and_sampling_are_independent(tmp_path: Path) -> None:
    backbone = Counting()
    cached = Cached(backbone, Recording.open(tmp_path / "a.jsonl"))
    texts = [
        ask(cached, user("a"), 0).text,
        ask(cached, user("a"), 1).text,
        ask(cached, user("a", temperature=0.5)).text,
        ask(cached, user("a", seed=2)).text,
        ask(cached, user("a", choices=("x",))).text,
    ]
    assert texts == [f"reply {number}" for number in range(1, 6)] and backbone.calls == 5


def test_a_miss_names_the_request_and_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    ask(Cached(Counting(), Recording.open(path)), user("You are in the hall."))
    backbone = Counting()
    replay = Cached(backbone, Recording.open(path, "replay"))
    with pytest.raises(ReplayMiss, match=r"message 2 of 2 on.*'You are in the hall.'.*'You are in the attic.'"):
        ask(replay, user("You are in the attic."))
    with pytest.raises(ReplayMiss, match="same messages was recorded; model, sampling"):
        ask(replay, user("You are in the hall.", temperature=1.0))
    with pytest.raises(ReplayMiss, match="recorded for repeat 0 only"):
        ask(replay, user("You are in the hall."), repeat=3)
    assert backbone.calls == 0


def test_an_empty_recording_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()
    with pytest.raises(ReplayMiss, match="is empty"):
        ask(Cached(Counting(), Recording.open(path, "replay")), user("a"))


@pytest.mark.parametrize("cut", [1, 20, 10_000])
def test_a_torn_last_line_costs_that_line_only(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    cached = Cached(Counting(), Recording.open(path))
    for text in "abc":
        ask(cached, user(text))
    whole = path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(whole[: max(len(whole) - cut, last + 1)])

    backbone = Counting()
    cached = Cached(backbone, Recording.open(path))
    assert ask(cached, user("b")).text == "reply 2" and backbone.calls == 0
    again = ask(cached, user("c")).text
    reread = Cached(Counting(), Recording.open(path, "replay"))
    assert [ask(reread, user(text)).text for text in "abc"] == ["reply 1", "reply 2", again]


def test_asked_twice_at_once_gives_one_reply(tmp_path: Path) -> None:
    cached = Cached(Counting(), Recording.open(tmp_path / "a.jsonl"))

    async def both() -> list[Completion]:
        return await asyncio.gather(*(cached.complete(user("a")) for _ in range(4)))

    texts = {done.text for done in asyncio.run(both())}
    assert len(texts) == 1
    assert texts == {ask(Cached(Counting(), Recording.open(tmp_path / "a.jsonl", "replay")), user("a")).text}


def _record_many(path: Path, name: str) -> None:
    cached = Cached(Counting("shared"), Recording.open(path))
    for number in range(25):
        ask(cached, user(f"{name} {number}"))
        ask(cached, user(f"both {number}"))


def test_two_processes_append_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_record_many, args=(path, name)) for name in "xy"]
    for other in others:
        other.start()
    for other in others:
        other.join(60)
        assert other.exitcode == 0
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    keys = [(line["k"], line["r"]) for line in lines if "k" in line]
    assert len(keys) == len(set(keys)) == 75
    assert sum("backbone" in line for line in lines) == 1


def test_what_another_process_recorded_is_found(tmp_path: Path) -> None:
    first = Cached(Counting(), Recording.open(tmp_path / "a.jsonl"))
    backbone = Counting()
    second = Cached(backbone, Recording.open(tmp_path / "a.jsonl"))
    ask(first, user("a"))
    assert ask(second, user("a")).cached and backbone.calls == 0


def test_packs_small_and_the_same_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    cached = Cached(Counting(), Recording.open(path))
    for number in range(200):
        ask(cached, user(f"You are in room {number}. " + "x" * 2000))
    recording = Recording.open(path)
    packed = recording.pack(tmp_path / "a.jsonl.gz")
    assert packed.read_bytes() == recording.pack(tmp_path / "b.jsonl.gz").read_bytes()
    replay = Cached(Counting(), Recording.open(packed))
    assert ask(replay, user("You are in room 7. " + "x" * 2000)).text == "reply 8"
    assert path.stat().st_size / 200 < 350 and packed.stat().st_size / 200 < 150


def test_unusable_paths_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist; record it first"):
        Recording.open(tmp_path / "none.jsonl", "replay")
    with pytest.raises(ConfigError, match="replay only"):
        Recording.open(tmp_path / "a.jsonl.gz", "record")
    with pytest.raises(ConfigError, match="not one of record, replay, auto"):
        Recording.open(tmp_path / "a.jsonl", "write")  # type: ignore[arg-type]
    (tmp_path / "bad.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(ConfigError, match="cannot be read"):
        Recording.open(tmp_path / "bad.jsonl.gz")
    (tmp_path / "old.jsonl").write_text("{}\n", "utf-8")
    with pytest.raises(ConfigError, match="exists"):
        Recording.open(tmp_path / "old.jsonl", "record")
    with pytest.raises(ConfigError, match="cannot be read"):
        Recording.open(tmp_path / "old.jsonl" / "below.jsonl")


def test_a_file_in_the_folder_s_place_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    cached = Cached(Counting(), Recording.open(folder / "a.jsonl"))
    folder.write_text("in the way", "utf-8")
    with pytest.raises(BackboneError, match="could not be written"):
        ask(cached, user("a"))


def test_an_llm_replays_without_its_server(fake: FakeOpenAI, tmp_path: Path) -> None:
    fake.models = {"data": [{"id": "fake-1", "owned_by": "llamacpp"}]}
    fake.answers = [Answer(body=reply("go north"))]
    path = tmp_path / "a.jsonl"
    request = user("go", choices=("go north", "go south"))
    live = LLM("fake-1", fake.url, KEY, cache=path)
    recorded = ask(live, request)
    identity = live.identity
    assert KEY.encode() not in path.read_bytes()

    replayed = LLM("fake-1", fake.url, cache=Recording.open(path, "replay"))
    again = ask(replayed, request)
    assert (again.text, again.body, again.cached) == (recorded.text, recorded.body, True)
    assert replayed.identity == identity and replayed.constrains
    assert fake.probes == 1 and len(fake.bodies) == 1


def test_a_mix_of_old_and_new_servers_is_warned_of(fake: FakeOpenAI, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    ask(LLM("fake-1", fake.url, connection=Connection(constrain="none"), cache=path), user("a"))
    other = LLM("fake-1", fake.url, connection=Connection(constrain="grammar"), cache=path)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        ask(other, user("b"))
        ask(other, user("c"))
    assert sum("another constrain" in str(warning.message) for warning in seen) == 1


def test_no_cache_means_none(fake: FakeOpenAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    llm = LLM("fake-1", fake.url, connection=Connection(constrain="none"))
    ask(llm, user("a"))
    ask(llm, user("a"))
    assert len(fake.bodies) == 2 and not list(tmp_path.iterdir())


def test_wrapping_what_records_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cache="):
        Cached(LLM("m", "http://127.0.0.1:1/v1"), Recording.open(tmp_path / "a.jsonl"))


bodies = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.lists(st.booleans(), max_size=3))


@given(bodies)
def test_equal_bodies_have_equal_keys_in_any_order(body: dict[str, Any]) -> None:
    turned = dict(reversed(body.items()))
    assert digest(body) == digest(turned) and json.loads(canonical(body)) == body


@given(st.text(alphabet=st.characters(), max_size=30))
def test_any_text_survives_the_file(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("texts") / "a.jsonl"
    ask(Cached(LLM.null(text), Recording.open(path)), user(text))
    recording = Recording.open(path)
    recording.pack(path.with_suffix(".gz"))
    assert ask(Cached(LLM.null(text), Recording.open(path.with_suffix(".gz"))), user(text)).text == text
    assert gzip.decompress(path.with_suffix(".gz").read_bytes()).isascii()
