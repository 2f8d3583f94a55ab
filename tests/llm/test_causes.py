"""What HTTP errors mean, in the words of each server: one task, everybody's key, the model, the credit, the server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harnesslab.errors import BackboneError
from harnesslab.llm import LLM, Connection, Request
from tests.llm.fake_openai import KEY, Answer, FakeOpenAI, error

ROWS: dict[str, tuple[int, Any, str]] = {
    "OpenAI, context": (400, error("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "context_length_exceeded"), "context"),
    "vLLM, context": (400, error("'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is 4096 tokens and your request has 3500 input tokens"), "context"),
    "vLLM, prompt": (400, {"object": "error", "message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.  Make sure that `max_model_len` is no smaller than the number of text tokens. context length"}, "context"),
    "llama.cpp, context": (400, {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error", "n_ctx": 4096}}, "context"),
    "llama.cpp, older": (500, error("the request exceeds the available context size. try increasing the context size"), "context"),
    "SGLang, context": (400, error("The input (9000 tokens) is longer than the model's context length (8192 tokens)."), "context"),
    "Anthropic, context": (400, error("prompt is too long: 210000 tokens > 200000 maximum"), "context"),
    "Anthropic, both": (400, error("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), "context"),
    "Gemini, context": (400, error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), "context"),
    "xAI, context": (400, {"code": "x", "error": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."}, "context"),
    "Mistral, context": (400, {"object": "error", "message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}, "context"),
    "Cohere, context": (400, {"message": "too many tokens: the total number of tokens in the prompt cannot exceed 4081"}, "context"),
    "TGI, context": (422, {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 5000", "error_type": "validation"}, "context"),
    "TGI, both": (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`"}, "context"),
    "Bedrock, context": (400, {"message": "Input is too long for requested model."}, "context"),
    "DashScope, context": (400, error("Range of input length should be [1, 30720]"), "context"),
    "LM Studio, context": (400, {"error": "The model is loaded with context length of only 4096 tokens, which is not enough"}, "context"),
    "too large": (413, "<html>Request Entity Too Large</html>", "context"),
    "Azure, filter": (400, {"error": {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "param": "prompt", "code": "content_filter"}}, "refused"),
    "OpenRouter, filter": (403, {"error": {"message": "Your input was flagged", "code": 403, "metadata": {"reasons": ["violence"]}}}, "refused"),
    "DashScope, filter": (400, error("Input data may contain inappropriate content. content policy", "data_inspection_failed"), "refused"),
    "OpenAI, a bad schema": (400, {"error": {"message": "Invalid schema for function 'x': schema must be of type object", "param": "tools[0].function.parameters", "code": "invalid_function_parameters"}}, "refused"),
    "without words": (400, "", "refused"),
    "451": (451, "unavailable", "refused"),
    "OpenAI, key": (401, error("Incorrect API key provided: x", "invalid_api_key"), "key"),
    "Gemini, key": (400, [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}], "key"),
    "xAI, key": (400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xx. You can obtain an API key from https://console.x.ai."}, "key"),
    "a gateway": (400, {"message": "Missing Authorization header"}, "key"),
    "forbidden": (403, "<html>403</html>", "key"),
    "OpenAI, model": (404, error("The model `x` does not exist or you do not have access to it.", "model_not_found"), "model"),
    "OpenRouter, model": (400, {"error": {"message": "x/y is not a valid model ID", "code": 400}}, "model"),
    "DeepSeek, model": (400, error("Model Not Exist"), "model"),
    "Mistral, model": (400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "param": None, "code": "1500"}, "model"),
    "LiteLLM, model": (400, error("/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view available models"), "model"),
    "Groq, model": (400, error("The model `x` has been decommissioned and is no longer supported.", "model_decommissioned"), "model"),
    "a path": (405, "<html>Method Not Allowed</html>", "model"),
    "OpenAI, quota": (429, error("You exceeded your current quota, please check your plan", "insufficient_quota"), "quota"),
    "OpenAI, limit": (400, error("Billing hard limit has been reached", "billing_hard_limit_reached"), "quota"),
    "Anthropic, credit": (400, error("Your credit balance is too low to access the Anthropic API."), "quota"),
    "DeepSeek, balance": (402, error("Insufficient Balance"), "quota"),
    "xAI, credits": (403, {"code": "x", "error": "Your team has used all available credits or reached its monthly spending limit."}, "quota"),
    "OpenRouter, credits": (402, {"error": {"message": "This request requires more credits, or fewer max_tokens.", "code": 402}}, "quota"),
    "Zhipu, balance": (429, error("insufficient balance"), "quota"),
    "busy": (429, error("Rate limit reached for requests"), "busy"),
    "Gemini, busy": (429, [{"error": {"code": 429, "message": "Resource has been exhausted (e.g. check quota).", "status": "RESOURCE_EXHAUSTED"}}], "busy"),
    "a dead server": (500, "Internal Server Error", "server"),
    "Anthropic, overloaded": (529, error("Overloaded", "overloaded_error"), "server"),
    "a proxy": (502, "<html><h1>502 Bad Gateway</h1></html>", "server"),
    "not implemented": (501, error("tools are not implemented"), "server"),
}  # fmt: skip


@pytest.mark.parametrize("server", ROWS)
def test_each_wording_has_its_cause(fake: FakeOpenAI, server: str) -> None:
    status, body, cause = ROWS[server]
    raw = body.encode() if isinstance(body, str) else None
    headers = {"content-type": "text/html"} if raw is not None else {}
    fake.answers = [Answer(status, body, headers, raw)]
    patience = 0 if cause in ("busy", "server") else 60  # what does not pass is not waited for
    llm = LLM("x", fake.url, KEY, connection=Connection(timeout=5, patience=patience, constrain="none"))
    with pytest.raises(BackboneError) as caught:
        asyncio.run(llm.complete(Request(({"role": "user", "content": "x"},))))
    assert (caught.value.cause, len(fake.bodies)) == (cause, 1)
    assert str(status) in str(caught.value) and "\n" not in str(caught.value)
