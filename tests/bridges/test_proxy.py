"""``harnesslab serve``: the harness in front of agents that know nothing of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

pytest.importorskip("starlette", reason="needs the extra 'serve'")
pytest.importorskip("uvicorn", reason="needs the extra 'serve'")

from harnesslab.bridges.dialects import DIALECTS, Anthropic, Chat, Dialect, Responses
from harnesslab.bridges.proxy import Proxy, ServeSettings
from harnesslab.errors import ConfigError
from harnesslab.harness import load_harness
from tests.bridges.desks import Upstream, plain_loop, reply
from tests.desk import BASELINE, HARNESS, TOOLS, Desk, call

CONTRACT = {"contract/tone.yaml": b"kind: prompt\nparams: {text: Be kind.}\n"}
KEY = "sk-secret-1234567890"


def proxy(upstream: Upstream, files: dict[str, bytes] | None = None, **settings: Any) -> Proxy:
    harness = load_harness(files if files is not None else HARNESS)
    return Proxy(harness, "http://upstream/v1", ServeSettings(**settings), transport=upstream)


@contextlib.contextmanager
def listening(made: Proxy) -> Iterator[str]:
    """The proxy on a free port, as `harnesslab serve` runs it."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(made.app, port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


async def post(made: Proxy, path: str, body: Any, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=made.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post(path, content=content, headers={"authorization": f"Bearer {KEY}", **headers})


def ask(made: Proxy, body: Any, path: str = "/v1/chat/completions", **headers: str) -> httpx.Response:
    return asyncio.run(post(made, path, body, **headers))


def chat(*messages: Any, **fields: Any) -> dict[str, Any]:
    first = [{"role": "system", "content": "You are the desk."}, {"role": "user", "content": Desk(0).instruction}]
    return {"model": "mock", "messages": [*first, *messages], "tools": TOOLS, **fields}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("files", "solved"), [(BASELINE, 4), (HARNESS, 16)])
def test_an_agent_of_somebody_elses_solves_what_the_lab_says(
    files: dict[str, bytes], solved: int, stream: bool
) -> None:
    desks = [Desk(number) for number in range(16)]
    with listening(proxy(Upstream(), files)) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY)
        for desk in desks:
            plain_loop(client, desk, stream=stream)
        client.close()
    assert sum(desk.solved for desk in desks) == solved


def test_the_request_is_patched_and_otherwise_as_it_was() -> None:
    upstream = Upstream()
    body = chat(temperature=0.3, seed=7, metadata={"a": "b"})
    ask(proxy(upstream, {**HARNESS, **CONTRACT}), body)
    sent = upstream.seen[0][1]
    assert sent["messages"][0]["content"] == "You are the desk.\n\n<harness>\nBe kind.\n</harness>"
    assert sent["messages"][1:] == body["messages"][1:]
    assert {k: v for k, v in sent.items() if k != "messages"} == {k: v for k, v in body.items() if k != "messages"}


def test_a_note_is_beside_the_result_in_this_request_and_in_every_later_one() -> None:
    upstream = Upstream()
    made = proxy(upstream)
    first = ask(made, chat()).json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "The order cost 1250 cents."}
    second = ask(made, chat(first, result)).json()["choices"][0]["message"]
    done = {"role": "tool", "tool_call_id": second["tool_calls"][0]["id"], "content": "Refunded 12.5 EUR."}
    ask(made, chat(first, result, second, done))
    for _, sent in upstream.seen[1:]:
        assert sent["messages"][3]["content"] == "The order cost 1250 cents.\n\nRefunds are in euros."
    assert upstream.seen[2][1]["messages"][5]["content"] == "Refunded 12.5 EUR."


def test_an_annotated_result_and_a_patched_tool_are_so_in_every_later_request() -> None:
    upstream, files = Upstream(), {
        **BASELINE,
        "contract/note.yaml": b"kind: annotate\nparams: {match: 'cost .* cents', text: 'In euros, please.'}\n",
        "contract/tool.yaml": b"kind: tool\nparams: {name: refund, note: Refunds are in euros.}\n",
    }  # fmt: skip
    made = proxy(upstream, files)
    first = ask(made, chat()).json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "The order cost 1250 cents."}
    second = ask(made, chat(first, result)).json()["choices"][0]["message"]
    done = {"role": "tool", "tool_call_id": second["tool_calls"][0]["id"], "content": "Refunded 12.5 EUR."}
    ask(made, chat(first, result, second, done))
    for _, sent in upstream.seen:
        assert sent["tools"][1]["function"]["description"] == "Refunds are in euros."
        assert [sent["tools"][0], sent["tools"][2]] == [TOOLS[0], TOOLS[2]]
    for _, sent in upstream.seen[1:]:
        assert sent["messages"][3]["content"] == "The order cost 1250 cents.\n\nIn euros, please."


def test_a_reply_without_a_call_is_asked_for_again() -> None:
    said = ["Hm.", "Let me think.", None]

    def model(messages: Any, tools: Any) -> dict[str, Any]:
        text = said.pop(0)
        return call("find_order", order="A-70") if text is None else {"role": "assistant", "content": text}

    again = {**BASELINE, "action/again.yaml": b"kind: ask_again\nparams: {times: 2}\n"}
    upstream = Upstream(model)
    choice = ask(proxy(upstream, again), chat()).json()["choices"][0]
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "find_order"
    assert [len(sent["messages"]) for _, sent in upstream.seen] == [2, 4, 6]


def test_a_withheld_reply_is_never_seen_by_the_agent_and_stays_in_the_models_past() -> None:
    upstream, hasty = Upstream(), Desk(2)
    made = proxy(upstream)
    body = {"model": "mock", "messages": [{"role": "user", "content": hasty.instruction}], "tools": TOOLS}
    message = ask(made, body).json()["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["name"] == "find_order"
    assert [len(sent["messages"]) for _, sent in upstream.seen] == [1, 3]
    assert upstream.seen[1][1]["messages"][2]["content"] == "Find the order first."
    result = {"role": "tool", "tool_call_id": "c", "content": "The order cost 1500 cents."}
    ask(made, {**body, "messages": [*body["messages"], message, result]})
    assert [m["role"] for m in upstream.seen[2][1]["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]


def test_a_model_that_does_not_listen_is_asked_a_bounded_number_of_times() -> None:
    block = {
        **BASELINE,
        "action/block.yaml": b"kind: block\nparams: {pattern: close_ticket, message: Not yet., limit: 99}\n",
    }
    upstream = Upstream(lambda messages, tools: call("close_ticket", ticket="T-0"))
    choice = ask(proxy(upstream, block, asks=2), chat()).json()["choices"][0]
    assert len(upstream.seen) == 3
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Not yet.", "stop")
    assert not choice["message"].get("tool_calls")


def test_a_stop_is_a_text() -> None:
    stop = {
        **BASELINE,
        "regulation/stop.py": b'def regulate(context, proposal):\n    return {"stop": True, "note": "Enough."}\n',
    }
    choice = ask(proxy(Upstream(), stop), chat()).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Enough.", "stop")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: type(dialect).__name__)
def test_parallel_calls_are_each_realized_and_keep_their_ids(dialect: Dialect, stream: bool) -> None:
    rewrite = {**BASELINE, "action/euros.yaml": b"kind: rewrite\nparams: {pattern: 'A-70', replacement: 'A-71'}\n"}

    def model(messages: Any, tools: Any) -> dict[str, Any]:
        calls = [call("find_order", order="A-70"), call("refund", order="A-70", euros=1250)]
        both = [{**one["tool_calls"][0], "id": f"call-{place}"} for place, one in enumerate(calls)]
        return {"role": "assistant", "content": "Both.", "tool_calls": both}

    found = ask(proxy(Upstream(model), rewrite), request(dialect, stream), f"/v1{dialect.path}")
    assert found.status_code == 200, found.text
    completion = read(dialect, found, stream)
    assert [one["id"] for one in completion.tool_calls] == ["call-0", "call-1"]
    assert [one["arguments"] for one in completion.tool_calls] == [{"order": "A-71"}, {"order": "A-71", "euros": 1250}]
    assert completion.text == "Both."


def request(dialect: Dialect, stream: bool) -> dict[str, Any]:
    text, name = Desk(1).instruction, "You are the desk."
    functions = [tool["function"] for tool in TOOLS]
    if isinstance(dialect, Responses):
        return {
            "model": "m",
            "instructions": name,
            "input": text,
            "stream": stream,
            "tools": [{"type": "function", **one} for one in functions],
        }
    if isinstance(dialect, Anthropic):
        tools = [{"name": one["name"], "input_schema": one["parameters"]} for one in functions]
        return {
            "model": "m",
            "system": name,
            "messages": [{"role": "user", "content": text}],
            "tools": tools,
            "stream": stream,
            "max_tokens": 99,
        }
    return chat(stream=stream)


def read(dialect: Dialect, response: httpx.Response, stream: bool) -> Any:
    if not stream:
        return dialect.completion(response.json())
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    if isinstance(dialect, Responses):
        return dialect.completion(events[-1]["response"])
    if isinstance(dialect, Anthropic):
        blocks: dict[int, dict[str, Any]] = {}
        for event in events:
            if event["type"] == "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            elif event["type"] == "content_block_delta":
                block, delta = blocks[event["index"]], event["delta"]
                if delta["type"] == "text_delta":
                    block["text"] += delta["text"]
                else:
                    block["input"] = json.loads(delta["partial_json"])
        return dialect.completion({"content": list(blocks.values())})
    from harnesslab.llm.replies import assemble

    return dialect.completion(assemble(events))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: type(dialect).__name__)
def test_a_call_as_prose_becomes_a_call_in_every_api(dialect: Dialect) -> None:
    found = ask(proxy(Upstream()), request(dialect, False) | ({} if not isinstance(dialect, Chat) else {"messages": [{"role": "user", "content": Desk(1).instruction}]}), f"/v1{dialect.path}")  # fmt: skip
    completion = dialect.completion(found.json())
    assert [one["name"] for one in completion.tool_calls] == ["find_order"]
    assert "action/rescue" in found.headers["x-harnesslab-fired"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: type(dialect).__name__)
def test_contract_text_reaches_the_system_message_of_every_api(dialect: Dialect) -> None:
    upstream = Upstream()
    ask(proxy(upstream, {**BASELINE, **CONTRACT}), request(dialect, False), f"/v1{dialect.path}")
    messages, _ = dialect.read(upstream.seen[0][1])
    assert messages[0]["role"] == "system" and "Be kind." in str(messages[0]["content"])


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(429, json={"error": {"message": "slow down"}}, headers={"retry-after": "7"}),
        httpx.Response(401, json={"error": {"message": "bad key"}}),
        httpx.Response(500, text="<html>oops</html>"),
        httpx.Response(200, json={"nothing": "of use"}),
        httpx.Response(200, text="not JSON"),
    ],
)
def test_faults_of_the_upstream_come_back_as_they_are(answer: httpx.Response) -> None:
    found = ask(proxy(Upstream(lambda messages, tools: answer)), chat())
    assert (found.status_code, found.content) == (answer.status_code, answer.content)
    assert found.headers.get("retry-after") == answer.headers.get("retry-after")


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("no"), httpx.ReadTimeout("late"), httpx.RemoteProtocolError("cut")]
)
def test_an_upstream_that_is_not_there_is_a_gateway_error(error: httpx.HTTPError) -> None:
    def model(messages: Any, tools: Any) -> Any:
        raise error

    found = ask(proxy(Upstream(model)), chat())
    assert found.status_code == (504 if isinstance(error, httpx.TimeoutException) else 502)
    assert "upstream" in found.json()["error"]["message"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b'{"messages": 3}', b'{"messages": []}', b"\xff"])
def test_what_is_no_request_is_for_the_upstream_to_refuse(body: bytes) -> None:
    found = ask(proxy(Upstream()), body)
    assert (found.status_code, found.json()["error"]["message"]) == (400, "bad request, says the upstream")


def test_other_paths_pass_through() -> None:
    upstream = Upstream()

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(app=proxy(upstream).app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            return await client.get("/v1/models?limit=3", headers={"authorization": f"Bearer {KEY}"})

    found = asyncio.run(get())
    assert found.json()["data"][0]["id"] == "mock" and found.headers["x-other"] == "kept"
    assert str(upstream.seen[0][0].url) == "http://upstream/v1/models?limit=3"


def test_keys_pass_through_and_are_in_no_log_and_no_metric(caplog: pytest.LogCaptureFixture) -> None:
    upstream = Upstream()
    made = proxy(upstream)
    with caplog.at_level(logging.DEBUG):
        ask(made, chat(), **{"x-harnesslab-session": "s-1"})
    assert upstream.seen[0][0].headers["authorization"] == f"Bearer {KEY}"
    assert not any(name.startswith("x-harnesslab") for name in upstream.seen[0][0].headers)
    told = " ".join(str(record.__dict__) for record in caplog.records if record.name.startswith("harnesslab"))
    assert "chat/completions" in told and KEY not in told and "arrived broken" not in told
    assert KEY not in made.metrics.render()[0].decode()
    assert KEY not in repr(vars(made.sessions))


def test_metrics_count_requests_repairs_and_blocks_by_intervention() -> None:
    made = proxy(Upstream())
    for number in (1, 2):
        ask(made, {"model": "m", "messages": [{"role": "user", "content": Desk(number).instruction}], "tools": TOOLS})
    text = made.metrics.render()[0].decode()
    assert 'harnesslab_requests_total{mode="on",path="/chat/completions",status="200"} 2.0' in text
    assert 'harnesslab_repairs_total{intervention="action/rescue"} 1.0' in text
    assert 'harnesslab_blocks_total{intervention="regulation/finish"} 1.0' in text
    assert "harnesslab_overhead_seconds_bucket" in text


@pytest.mark.parametrize("by_header", [False, True])
@pytest.mark.parametrize("mode", ["off", "shadow"])
def test_off_and_shadow_change_nothing(mode: str, by_header: bool, caplog: pytest.LogCaptureFixture) -> None:
    upstream, body = Upstream(), chat()
    body["messages"][1]["content"] = Desk(1).instruction
    made = proxy(upstream, {**HARNESS, **CONTRACT}, **({} if by_header else {"mode": mode}))
    with caplog.at_level(logging.INFO, "harnesslab.serve"):
        found = ask(made, body, **({"x-harnesslab": mode} if by_header else {}))
    assert upstream.seen[0][1] == body
    assert "tool_calls" not in found.json()["choices"][0]["message"]
    (line,) = [record.fields for record in caplog.records if record.name == "harnesslab.serve"]  # type: ignore[attr-defined]
    assert line["mode"] == mode and line["changed"] == (mode == "shadow")
    assert ("action/rescue" in line["fired"]) == (mode == "shadow")


def test_a_header_never_switches_a_harness_on() -> None:
    upstream = Upstream()
    ask(proxy(upstream, {**HARNESS, **CONTRACT}, mode="off"), chat(), **{"x-harnesslab": "on"})
    assert upstream.seen[0][1] == chat()


def test_a_pattern_limits_the_harness_to_some_agents() -> None:
    upstream = Upstream()
    made = proxy(upstream, {**HARNESS, **CONTRACT}, only="the planner")
    ask(made, chat())
    assert upstream.seen[0][1] == chat()
    ask(made, {**chat(), "messages": [{"role": "system", "content": "You are the planner."}, *chat()["messages"][1:]]})
    assert "Be kind." in upstream.seen[1][1]["messages"][0]["content"]


def test_an_intervention_that_fails_does_not_take_the_agent_down() -> None:
    broken = {**BASELINE, "action/bad.py": b"def realize(context, proposal):\n    raise ValueError('no')\n"}
    made = proxy(Upstream(), broken)
    assert ask(made, chat()).json()["choices"][0]["message"]["tool_calls"]
    assert "harnesslab_faults_total 1.0" in made.metrics.render()[0].decode()


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_too_large_is_refused(declared: bool) -> None:
    made = proxy(Upstream(), max_body=1000)
    large = json.dumps(chat(padding="x" * 5000)).encode()

    async def chunks() -> Any:
        for start in range(0, len(large), 500):
            yield large[start : start + 500]

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=made.app), base_url="http://proxy") as client:
            return await client.post("/v1/chat/completions", content=large if declared else chunks())

    found = asyncio.run(send())
    assert found.status_code == 413 and "1000 bytes" in found.json()["error"]["message"]


def test_sessions_are_bounded_and_those_of_two_callers_apart() -> None:
    made = proxy(Upstream(), max_sessions=3)
    for number in range(8):
        ask(made, chat(), **{"x-harnesslab-session": f"s-{number}"})
    assert len(made.sessions) == 3
    ask(made, chat(), **{"x-harnesslab-session": "s-7"})
    assert len(made.sessions) == 3
    asyncio.run(post(made, "/v1/chat/completions", chat(), **{"authorization": "Bearer other"}))
    assert len(made.sessions) == 3


@pytest.mark.parametrize("wrong", [{"mode": "maybe"}, {"only": "("}])
def test_wrong_settings_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        proxy(Upstream(), **wrong)
    with pytest.raises(ConfigError, match="not an HTTP URL"):
        Proxy(load_harness(BASELINE), "upstream")


def test_health_names_the_harness() -> None:
    async def get() -> Any:
        transport = httpx.ASGITransport(app=proxy(Upstream()).app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            return (await client.get("/healthz")).json()

    assert asyncio.run(get())["harness"] == "desk"


def test_a_hundred_agents_at_once_do_not_mix() -> None:
    made = proxy(Upstream(seconds=0.01))

    async def all_of_them() -> list[Any]:
        bodies = [
            {"model": "m", "messages": [{"role": "user", "content": Desk(n).instruction}], "tools": TOOLS}
            for n in range(100)
        ]
        return await asyncio.gather(*(post(made, "/v1/chat/completions", body) for body in bodies))

    for number, found in enumerate(asyncio.run(all_of_them())):
        arguments = json.loads(found.json()["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
        assert arguments["order"] == f"A-{70 + number}"


def test_replies_are_written_as_they_are_read() -> None:
    for dialect in DIALECTS:
        raw = reply(dialect, {"content": "Both.", "tool_calls": call("refund", order="A", euros=1.5)["tool_calls"]})
        completion = dialect.completion(raw)
        assert (completion.text, [one["arguments"] for one in completion.tool_calls]) == ("Both.", [{"order": "A", "euros": 1.5}])  # fmt: skip
