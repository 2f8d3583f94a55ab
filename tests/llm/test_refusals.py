"""Endpoints that refuse a field or a value, in the words of each server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harnesslab.errors import BackboneError
from harnesslab.llm import LLM, Connection, Request
from harnesslab.llm.refusals import refusal
from tests.llm.fake_openai import KEY, Answer, FakeOpenAI, reply

FIELD, VALUE = False, True


def _detail(*loc: Any, msg: str = "Extra inputs are not permitted", kind: str = "extra_forbidden") -> dict[str, Any]:
    return {"type": kind, "loc": ["body", *loc], "msg": msg, "input": 7}


def _said(message: Any, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


ROWS: dict[str, tuple[Any, str, bool]] = {
    "OpenAI, param": (_said("Unsupported parameter: 'seed' is not supported with this model.", param="seed", code="unsupported_parameter"), "seed", FIELD),
    "OpenAI, the other limit": (_said("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", param="max_tokens", code="unsupported_parameter"), "max_tokens", FIELD),
    "OpenAI, value": (_said("Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported.", param="temperature", code="unsupported_value"), "temperature", VALUE),
    "OpenAI, unknown": (_said("Unknown parameter: 'min_p'.", param="min_p", code="unknown_parameter"), "min_p", FIELD),
    "OpenAI, older": (_said("Unrecognized request argument supplied: seed", param=None, code=None), "seed", FIELD),
    "OpenAI, JSON schema": (_said("Additional properties are not allowed ('seed' was unexpected)"), "seed", FIELD),
    "OpenAI, a nested place": (_said("Invalid value: 'x'.", param="response_format.type"), "response_format", VALUE),
    "Azure": (_said("Unrecognized request arguments supplied: min_p, seed"), "min_p", FIELD),
    "Azure AI inference": ({"status": 422, "code": "parameter_not_supported", "detail": {"loc": ["body", "seed"], "input": 7}, "message": "One of the parameters contain invalid values."}, "seed", FIELD),
    "Azure AI, Mistral": ({"error": {"code": "Invalid input", "status": 422, "message": json.dumps({"detail": [_detail("seed")]})}}, "seed", FIELD),
    "Azure, a pointer": ({"requestid": "x", "code": 400, "message": "Validation error at #/max_completion_tokens: Extra inputs are not permitted"}, "max_completion_tokens", FIELD),
    "vLLM, Python's repr": ({"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 7}]", "type": "BadRequestError", "param": None, "code": 400}, "seed", FIELD),
    "vLLM, two of them": ({"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'min_p'), 'msg': 'Extra inputs are not permitted', 'input': 42}, {'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'x', 'input': 1}]"}, "min_p", FIELD),
    "vLLM, value": ({"object": "error", "message": "temperature must be non-negative, got -1.0.", "type": "BadRequestError", "param": None, "code": 400}, "temperature", VALUE),
    "vLLM, top_p": ({"error": {"message": "top_p must be in (0, 1], got 7.", "type": "BadRequestError", "param": "top_p", "code": 400}}, "top_p", VALUE),
    "FastAPI": ({"detail": [_detail("seed")]}, "seed", FIELD),
    "FastAPI, value": ({"detail": [_detail("temperature", msg="Input should be less than or equal to 2", kind="less_than_equal")]}, "temperature", VALUE),
    "FastAPI, a number": ({"detail": [_detail("seed", msg="Input should be a valid integer", kind="int_parsing")]}, "seed", VALUE),
    "NIM": ({"type": "urn:inference-service:problem-details:bad-request", "title": "Bad Request", "status": 400, "detail": "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 7}]"}, "seed", FIELD),
    "Mistral": ({"object": "error", "message": {"detail": [_detail("max_completion_tokens")]}, "type": "invalid_request_error", "param": None, "code": None}, "max_completion_tokens", FIELD),
    "Mistral, in a string": ({"object": "error", "message": json.dumps({"detail": [_detail("seed")]}), "type": "internal_error_proxy", "param": None}, "seed", FIELD),
    "Mistral, a list": ({"object": "Error", "detail": [_detail("tools")], "message": [_detail("tools")], "type": "invalid_request_error", "code": 3001}, "tools", FIELD),
    "Groq": (_said("property 'seed' is unsupported"), "seed", FIELD),
    "Groq, logprobs": (_said("`logprobs` is not supported with this model"), "logprobs", FIELD),
    "Cerebras": ({"message": "body.seed: property 'body.seed' is unsupported", "type": "invalid_request_error", "param": "validation_error", "code": "wrong_api_format"}, "seed", FIELD),
    "Gemini": ([{"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.', "status": "INVALID_ARGUMENT", "details": [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"description": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}]}]}}], "seed", FIELD),
    "Gemini, in an object": ({"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "min_p" at \'generation_config\': Cannot find field.', "status": "INVALID_ARGUMENT"}}, "min_p", FIELD),
    "Anthropic": ({"type": "error", "error": {"type": "invalid_request_error", "message": "seed: Extra inputs are not permitted"}}, "seed", FIELD),
    "Anthropic, two fields": (_said("`temperature` and `top_p` cannot both be specified for this model. Please use only one."), "temperature", FIELD),
    "Bedrock": ({"message": "The model returned the following errors: seed: Extra inputs are not permitted"}, "seed", FIELD),
    "xAI": ({"code": "Client specified an invalid argument", "error": "Argument not supported on this model: presencePenalty"}, "presence_penalty", FIELD),
    "xAI, newer": ({"error": "Model grok does not support parameter presencePenalty."}, "presence_penalty", FIELD),
    "LiteLLM": (_said("litellm.UnsupportedParamsError: mistral does not support parameters: {'max_completion_tokens': 9}, for model=m. To drop these, set `litellm.drop_params=True`", code="400"), "max_completion_tokens", FIELD),
    "LiteLLM, a list": (_said("openai does not support parameters: ['seed'], for model=m"), "seed", FIELD),
    "OpenRouter": ({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(_said("Unsupported parameter: 'seed'", param="seed")), "provider_name": "Azure"}}}, "seed", FIELD),
    "Databricks, Go": ({"error_code": "BAD_REQUEST", "message": 'Bad request: json: unknown field "seed"'}, "seed", FIELD),
    "Go": ({"message": "invalid request: json: unknown field \"min_p\""}, "min_p", FIELD),
    "serde": ({"error": "Failed to deserialize the JSON body into the target type: unknown field `min_p`, expected one of `messages`, `seed`, `temperature` at line 1 column 90", "error_type": "validation"}, "min_p", FIELD),
    "serde, value": ("Failed to deserialize the JSON body into the target type: seed: invalid value: integer `-1`, expected u64 at line 1 column 50", "seed", VALUE),
    "Together": (_said("Input validation error: `seed` must not be set when `best_of` > 1"), "seed", FIELD),
    "TGI": ({"error": "Input validation error: `temperature` must be strictly positive", "error_type": "validation"}, "temperature", VALUE),
    "llama.cpp": ({"error": {"code": 400, "message": "Unsupported param: logprobs", "type": "invalid_request_error"}}, "logprobs", FIELD),
    "LM Studio": ({"error": "'response_format.type' must be 'json_schema' or 'text'"}, "response_format", VALUE),
    "Fireworks": (_said("Extra inputs are not permitted, field: 'seed', value: 7"), "seed", FIELD),
    "DeepSeek, value": (_said("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), "max_tokens", VALUE),
    "Moonshot, value": (_said("invalid temperature: only 1 is allowed for this model"), "temperature", VALUE),
    "Cohere": ({"message": "unknown field: parameter 'seed' is not a valid field"}, "seed", FIELD),
    "watsonx": ({"errors": [{"code": "json_validation_error", "message": "Json document validation error: field 'seed' is not allowed"}], "status_code": 400}, "seed", FIELD),
    "Ajv": ({"errors": [{"instancePath": "/temperature", "message": "must be <= 2"}]}, "temperature", VALUE),
    "deprecated": (_said("The parameter seed is deprecated and no longer available."), "seed", FIELD),
    "must be removed": (_said("The field 'seed' must be omitted."), "seed", FIELD),
    "no field is named": (_said("Invalid request."), "", FIELD),
    "another field": (_said("Unsupported parameter: 'top_k'", param="top_k"), "", FIELD),
    "a message": ({"detail": [_detail("messages", 3, "assistant", "seed")]}, "", FIELD),
    "a filter": (_said("The response was filtered due to the prompt triggering the content management policy.", param="prompt", code="content_filter"), "", FIELD),
    "prose": (_said("Your prompt asks for the tools of a burglar."), "", FIELD),
    "Chinese": (_said("API 调用参数有误,请检查文档。", code="1210"), "", FIELD),
    "null": (None, "", FIELD),
}  # fmt: skip
SENT = ("model", "messages", "temperature", "max_tokens", "max_completion_tokens", "seed", "top_p", "min_p", "tools", "logprobs", "response_format", "presence_penalty", "best_of")  # fmt: skip


@pytest.mark.parametrize("server", ROWS)
def test_the_refused_field_is_named(server: str) -> None:
    body, field, value = ROWS[server]
    assert refusal(body, SENT) == (field, value)


def _ask(llm: LLM, times: int = 1) -> list[str]:
    request = Request(({"role": "user", "content": "x"},), temperature=0.7, seed=7)

    async def all_of_them() -> list[str]:
        return [reply.text for reply in await asyncio.gather(*(llm.complete(request) for _ in range(times)))]

    try:
        return asyncio.run(all_of_them())
    finally:
        llm.close()


def _llm(fake: FakeOpenAI, **more: Any) -> LLM:
    return LLM("fake-1", fake.url, KEY, connection=Connection(timeout=5, patience=1, constrain="none"), **more)


@pytest.mark.parametrize("server", [server for server, row in ROWS.items() if row[1] == "seed"])
def test_a_refused_seed_is_left_out(fake: FakeOpenAI, server: str) -> None:
    fake.answers = [lambda sent: Answer(400, ROWS[server][0]) if "seed" in sent else Answer(body=reply())]
    with pytest.warns(UserWarning, match="'seed'; it is left out"):
        assert _ask(_llm(fake)) == ["hello"]


def test_requests_in_flight_at_the_refusal_are_sent_again(fake: FakeOpenAI) -> None:
    fake.answers = [lambda sent: Answer(422, ROWS["FastAPI"][0]) if "seed" in sent else Answer(body=reply())]
    with pytest.warns(UserWarning) as told:
        assert _ask(_llm(fake), 6) == ["hello"] * 6
    assert len([one for one in told if "refuses" in str(one.message)]) == 1


@pytest.mark.parametrize("server", ["OpenAI, the other limit", "Mistral"])
@pytest.mark.parametrize("lasting", [False, True])
def test_the_token_limit_is_sent_by_its_other_name_once(fake: FakeOpenAI, server: str, lasting: bool) -> None:
    body, field, _ = ROWS[server]
    first = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[field]
    fake.answers = [lambda sent: Answer(400, body) if field in sent or lasting else Answer(body=reply())]
    llm = _llm(fake, max_tokens=None, extra={field: 9})
    if lasting:
        with pytest.warns(UserWarning), pytest.raises(BackboneError) as caught:
            _ask(llm)
        assert caught.value.cause == "setup" or field not in fake.bodies[-1]
    else:
        with pytest.warns(UserWarning, match=f"'{first}' is sent in its place"):
            assert _ask(llm) == ["hello"]
    assert len(fake.bodies) == 2 and fake.bodies[1][first] == 9


OTHERS = [server for server, (_, field, value) in ROWS.items() if field in ("temperature", "top_p", "min_p", "logprobs", "presence_penalty", "max_tokens") and (value or field != "max_tokens")]  # fmt: skip


@pytest.mark.parametrize("server", OTHERS)
def test_any_other_field_is_reported_and_stops_at_once(fake: FakeOpenAI, server: str) -> None:
    body, field, value = ROWS[server]
    fake.answers = [Answer(400, body)]
    extra = {field: 7} if field not in ("temperature", "max_tokens") else {}
    with pytest.raises(BackboneError) as caught:
        _ask(_llm(fake, extra=extra))
    assert (caught.value.cause, len(fake.bodies)) == ("setup", 1)
    told = str(caught.value)
    assert (f"refuses the value of the field '{field}'" if value else f"refuses the field '{field}'") in told
    assert "\n" not in told
