"""LLM against a server that answers, refuses, hangs, limits and talks nonsense."""

from __future__ import annotations

import asyncio
import pickle
import socket
import time
import warnings
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm import LLM, Completion, Connection, Request
from harnesslab.llm.transport import retry_after
from tests.llm.fake_openai import KEY, Answer, FakeOpenAI, error, reply


def make(fake: FakeOpenAI, model: str = "fake-1", **arguments) -> LLM:
    arguments.setdefault("connection", Connection(timeout=5, patience=5, constrain="none"))
    return LLM(model, fake.url, KEY, **arguments)


def ask(llm: LLM, request: Request, **arguments) -> Completion:
    async def once() -> Completion:
        try:
            return await llm.complete(request, **arguments)
        finally:
            llm.close()

    return asyncio.run(once())


def test_sends_the_body_and_reads_the_reply(fake: FakeOpenAI, request_: Request) -> None:
    done = ask(make(fake, max_tokens=9, extra={"top_p": 0.5}), request_)
    assert fake.bodies == [
        {
            "model": "fake-1",
            "messages": list(request_.messages),
            "temperature": 0.0,
            "max_tokens": 9,
            "top_p": 0.5,
        }
    ]
    assert done.body == fake.bodies[0]
    assert fake.keys == [f"Bearer {KEY}"]
    assert (done.text, done.prompt_tokens, done.completion_tokens, done.model) == ("hello", 7, 3, "fake-1")
    assert not done.cached and done.seconds > 0


def test_request_overrides_the_sampling_and_repeats_get_their_own_seed(fake: FakeOpenAI, request_: Request) -> None:
    llm = make(fake)
    request = Request(request_.messages, temperature=0.7, max_tokens=3, seed=11)
    ask(llm, request)
    ask(llm, request, repeat=1)
    first, second = fake.bodies
    assert (first["temperature"], first["max_tokens"], first["seed"]) == (0.7, 3, 11)
    assert second["seed"] != 11 and {**second, "seed": 11} == first


@pytest.mark.parametrize("model", ["gpt-5-mini", "o3", "openai/gpt-5.1"])
def test_reasoning_models_get_no_temperature(fake: FakeOpenAI, request_: Request, model: str) -> None:
    ask(make(fake, model, max_tokens=5), request_)
    assert "temperature" not in fake.bodies[0] and "max_tokens" not in fake.bodies[0]
    assert fake.bodies[0]["max_completion_tokens"] == 5


@pytest.mark.parametrize("model", ["gpt-5-chat-latest", "gpt-4o", "qwen3-o1x"])
def test_other_models_keep_it(fake: FakeOpenAI, request_: Request, model: str) -> None:
    ask(make(fake, model, max_tokens=5), request_)
    assert fake.bodies[0]["temperature"] == 0.0 and fake.bodies[0]["max_tokens"] == 5


def test_retries_what_passes(fake: FakeOpenAI, request_: Request) -> None:
    limited = Answer(429, error("slow down"), {"retry-after": "0"})
    broken = Answer(503, error("loading"), {"retry-after": "0"})
    fake.answers = [limited, broken, Answer(drop=True), Answer(body=reply("at last"))]
    assert ask(make(fake), request_).text == "at last"
    assert len(fake.bodies) == 4


def test_retry_after_slows_every_caller(fake: FakeOpenAI, request_: Request) -> None:
    fake.answers = [Answer(429, error("slow down"), {"retry-after": "0.6"}), Answer(body=reply())]
    llm = make(fake)

    async def both() -> tuple[float, float]:
        begun = time.monotonic()
        first = asyncio.create_task(llm.complete(request_))
        while not fake.bodies or fake.in_flight or not llm._transport._paused_until:
            await asyncio.sleep(0.005)
        await llm.complete(request_)
        second_done = time.monotonic() - begun
        await first
        return second_done, time.monotonic() - begun

    second_done, all_done = asyncio.run(both())
    assert second_done >= 0.55 and all_done >= 0.55
    assert len(fake.bodies) == 3


def test_retry_after_beyond_the_patience_ends_at_once(fake: FakeOpenAI, request_: Request) -> None:
    fake.answers = [Answer(429, error("slow down"), {"retry-after": "3600"})]
    begun = time.monotonic()
    with pytest.raises(BackboneError, match=r"HTTP 429.*lower concurrency"):
        ask(make(fake), request_)
    assert time.monotonic() - begun < 3 and len(fake.bodies) == 1


def test_retry_after_in_every_form() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=100), usegmt=True)
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert 95 < (retry_after({"retry-after": soon}) or 0) <= 100
    assert retry_after({"retry-after": past}) == 0
    assert retry_after({"retry-after": "soon"}) is None and retry_after({}) is None


def test_used_up_quota_is_not_waited_for(fake: FakeOpenAI, request_: Request) -> None:
    fake.answers = [Answer(429, error("You exceeded your current quota", "insufficient_quota"))]
    with pytest.raises(BackboneError, match="quota"):
        ask(make(fake), request_)
    assert len(fake.bodies) == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(401, error(f"Incorrect API key provided: {KEY}")), "refuses the key.*check api_key"),
        (Answer(404, error("The model `fake-1` does not exist")), "does not know the model 'fake-1'"),
        (
            Answer(400, error("This model's maximum context length is 8192 tokens", "context_length_exceeded")),
            "does not fit the context.*less history",
        ),
        (
            Answer(400, error("Unsupported parameter: 'temperature' is not supported")),
            r"refuses the field 'temperature'.*temperature=None",
        ),
        (Answer(raw=b"<html>proxy login</html>", headers={"content-type": "text/html"}), "OpenAI-compatible"),
        (Answer(raw=b'{"choices": [', headers={"content-type": "application/json"}), "OpenAI-compatible"),
        (Answer(body={"choices": []}), "without any choice"),
    ],
)
def test_refusals_are_one_clear_error(fake: FakeOpenAI, request_: Request, answer: Answer, told: str) -> None:
    fake.answers = [answer]
    with pytest.raises(BackboneError, match=told) as caught:
        ask(make(fake), request_)
    assert KEY not in str(caught.value) and fake.url in str(caught.value)
    assert caught.value.__cause__ is None and len(fake.bodies) == 1


def test_a_missing_model_is_told_with_those_that_are_there(fake: FakeOpenAI) -> None:
    fake.answers = [Answer(404, error("model not found"))]
    fake.models = {"data": [{"id": "llama-3", "owned_by": "vllm"}, {"id": "qwen", "owned_by": "vllm"}]}
    llm = make(fake, "lama-3", connection=Connection(timeout=5, patience=1))
    with pytest.raises(BackboneError, match="It has: llama-3, qwen"):
        ask(llm, Request(({"role": "user", "content": "x"},), choices=("a",)))


def test_a_server_that_hangs_is_left(fake: FakeOpenAI, request_: Request) -> None:
    fake.answers = [Answer(hang=True)]
    with pytest.raises(BackboneError, match=r"did not answer within 0.2 s"):
        ask(make(fake, connection=Connection(timeout=0.2, patience=0)), request_)


def test_a_closed_endpoint_is_told_soon(request_: Request) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    llm = LLM("m", url, connection=Connection(patience=1, constrain="none"))
    with pytest.raises(BackboneError, match=r"cannot be reached.*check base_url"):
        ask(llm, request_)


def test_errors_of_the_server_are_waited_for_no_longer_than_the_patience(fake: FakeOpenAI, request_: Request) -> None:
    fake.answers = [Answer(500, error("boom"))]
    begun = time.monotonic()
    with pytest.raises(BackboneError, match="HTTP 500"):
        ask(make(fake, connection=Connection(timeout=5, patience=0.8, constrain="none")), request_)
    assert time.monotonic() - begun < 4, "the patience of 0.8 s counts, not the timeout of 5"


def test_concurrency_is_bounded(fake: FakeOpenAI, request_: Request) -> None:
    llm = make(fake, connection=Connection(timeout=5, patience=5, concurrency=2, constrain="none"))

    async def many() -> None:
        await asyncio.gather(*(llm.complete(request_) for _ in range(12)))

    asyncio.run(many())
    assert len(fake.bodies) == 12 and fake.most_in_flight <= 2


def test_works_from_one_loop_after_another(fake: FakeOpenAI, request_: Request) -> None:
    llm = make(fake)
    assert [asyncio.run(llm.complete(request_)).text for _ in range(3)] == ["hello"] * 3


def test_warns_once_when_the_served_model_changes(fake: FakeOpenAI, request_: Request) -> None:
    fake.answers = [Answer(body=reply(model=name)) for name in ("a-1", "a-2", "a-1", "a-3")]
    llm = make(fake)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(4):
            asyncio.run(llm.complete(request_))
    mixes = [str(warning.message) for warning in seen if "more than one model" in str(warning.message)]
    assert len(mixes) == 1 and "a-1 and a-2" in mixes[0]
    assert llm.served == {("a-1", ""): 2, ("a-2", ""): 1, ("a-3", ""): 1}


def test_the_key_is_shown_nowhere(fake: FakeOpenAI, request_: Request) -> None:
    llm = make(fake)
    fake.answers = [Answer(body=reply(f"my key is {KEY}"))]
    done = ask(llm, request_)
    assert KEY not in repr(llm) + repr(done) + str(llm.identity) + str(llm.spec)


def test_goes_to_another_process_without_the_key(
    fake: FakeOpenAI, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    llm = make(fake)
    asyncio.run(llm.complete(request_))
    stored = pickle.dumps(llm)
    assert KEY.encode() not in stored
    assert ask(pickle.loads(stored), request_).text == "hello"
    assert fake.keys[0] != fake.keys[1]


def test_the_openai_key_goes_to_no_other_address(
    fake: FakeOpenAI, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ask(LLM("fake-1", fake.url, connection=Connection(constrain="none")), request_)
    assert KEY not in fake.keys[0]
    monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
    ask(LLM("fake-1", connection=Connection(constrain="none")), request_)
    assert KEY in fake.keys[1]


def test_openai_without_a_key_says_so(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(BackboneError, match="OPENAI_API_KEY"):
        ask(LLM("gpt-5-mini"), request_)


def test_no_key_was_sent_is_what_a_401_says(
    fake: FakeOpenAI, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    fake.answers = [Answer(401, error("Unauthorized"))]
    with pytest.raises(BackboneError, match=r"no key was sent: pass api_key=.*api_key_env.*only where base_url is not"):
        ask(LLM("fake-1", fake.url, connection=Connection(patience=1, constrain="none")), request_)


def test_a_refused_seed_is_asked_for_once(fake: FakeOpenAI) -> None:
    request = Request(({"role": "user", "content": "x"},), temperature=0.7, seed=7)
    llm = make(fake)
    refused = Answer(400, error("property 'seed' is unsupported"))
    fake.answers = [lambda sent: refused if "seed" in sent else Answer(body=reply())]
    with pytest.warns(UserWarning, match="refuses the field 'seed'; it is left out"):
        assert ask(llm, request).text == "hello"
    ask(llm, request)
    assert ["seed" in sent for sent in fake.bodies] == [True, False, False]


def test_the_token_limit_goes_by_its_other_name_where_the_first_is_refused(fake: FakeOpenAI, request_: Request) -> None:
    refusal = Answer(
        400,
        error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        ),
    )
    fake.answers = [lambda sent: refusal if "max_tokens" in sent else Answer(body=reply())]
    with pytest.warns(UserWarning, match="max_completion_tokens"):
        ask(make(fake, max_tokens=9), request_)
    assert fake.bodies[1]["max_completion_tokens"] == 9


def test_seed_and_temperature_may_be_none(fake: FakeOpenAI) -> None:
    request = Request(({"role": "user", "content": "x"},), temperature=0.7, seed=7)
    ask(make(fake, seed=None), request)
    ask(make(fake, seed=3), request)
    ask(make(fake, temperature=None), Request(request.messages, seed=7))
    ask(make(fake), Request(request.messages, seed=7))
    assert [sent.get("seed") for sent in fake.bodies] == [None, 3, 7, None]
    assert "temperature" not in fake.bodies[2]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        LLM("m", "localhost:8000")
    with pytest.raises(ConfigError, match="model"):
        LLM("")
    with pytest.raises(ConfigError, match="Connection"):
        Connection(concurrency=0)


@pytest.mark.parametrize(
    ("owner", "field"),
    [("llamacpp", "grammar"), ("vllm", "structured_outputs"), ("library", "response_format"), ("nobody", None)],
)
def test_choices_go_out_as_the_server_takes_them(fake: FakeOpenAI, owner: str, field: str | None) -> None:
    fake.models = {"data": [{"id": "fake-1", "owned_by": owner}]}
    llm = make(fake, max_tokens=4, connection=Connection(timeout=5))
    assert llm.constrains is (field is not None)
    request = Request(({"role": "user", "content": "go"},), choices=("go north", "go south"))
    answer = '{"choice": "go south"}' if field == "response_format" else "go south"
    fake.answers = [Answer(body=reply(answer))]
    assert ask(llm, request).text == "go south"
    fields = {"grammar", "structured_outputs", "response_format"} & fake.bodies[0].keys()
    assert fields == ({field} if field else set())
    assert (fake.bodies[0]["max_tokens"] > 4) is (field is not None)
    assert fake.probes == 1
