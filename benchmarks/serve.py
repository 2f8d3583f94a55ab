"""What `harnesslab serve` adds to a request, with 50 sessions at once against a mock upstream. Prints one table.

    python benchmarks/serve.py [--sessions 50] [--rounds 20] [--latency 0.5]

Upstream, proxy and clients run in processes of their own. Each session is a conversation that grows by one tool result a round.
The overhead is the time of a request through the proxy less the mock's latency, beside the same of requests that go to the mock
directly; LiteLLM's proxy is measured in the same run where `litellm[proxy]` is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_order",
            "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
        },
    }
]
HARNESS = {
    "harness.toml": 'name = "bench"\nprotocol = "tools"\n',
    "contract/tone.yaml": "kind: prompt\nparams: {text: Be kind.}\n",
    "action/rescue.yaml": "kind: rescue\n",
    "action/snap.yaml": "kind: snap\n",
    "regulation/loop.yaml": "kind: loop_breaker\n",
}
UPSTREAM = """
import asyncio, json, sys
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
import uvicorn
LATENCY = float(sys.argv[2])
async def chat(request):
    await request.json()
    await asyncio.sleep(LATENCY)
    call = {"id": "c", "type": "function", "function": {"name": "find_order", "arguments": json.dumps({"order": "A"})}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return JSONResponse({"id": "x", "object": "chat.completion", "created": 1, "model": "mock", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
uvicorn.run(Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])]), port=int(sys.argv[1]), log_level="error", access_log=False)
"""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}")


async def measure(url: str, sessions: int, rounds: int) -> list[float]:
    """Seconds of each request, the first round of each session left out."""
    limits = httpx.Limits(max_connections=sessions, max_keepalive_connections=sessions)
    found: list[float] = []
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:

        async def session(number: int) -> None:
            await asyncio.sleep(number * 0.5 / sessions)
            messages = [
                {"role": "system", "content": "You are a desk. " * 40},
                {"role": "user", "content": f"Ticket {number}"},
            ]
            for place in range(rounds):
                body = json.dumps({"model": "mock", "messages": messages, "tools": TOOLS}).encode()
                began = time.perf_counter()
                answer = await client.post(
                    url, content=body, headers={"authorization": "Bearer k", "content-type": "application/json"}
                )
                took = time.perf_counter() - began
                answer.raise_for_status()
                if place:
                    found.append(took)
                messages.append(answer.json()["choices"][0]["message"])
                messages.append({"role": "tool", "tool_call_id": "c", "content": f"Result {place}: " + "word " * 50})

        await asyncio.gather(*(session(number) for number in range(sessions)))
    return found


def cpu_of(process: subprocess.Popen[bytes]) -> float:
    """Seconds of CPU that a process has used; the wall clock of a shared machine says little."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def row(name: str, seconds: list[float], latency: float, cpu: float) -> str:
    over = sorted(1000 * (one - latency) for one in seconds)
    p99 = over[min(len(over) - 1, int(0.99 * len(over)))]
    return (
        f"{name:<18} {len(over):>8} {statistics.median(over):>12.1f} {p99:>12.1f} {over[-1]:>12.1f} {1000 * cpu:>12.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--latency", type=float, default=0.5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in HARNESS.items():
            path = Path(folder, "harness", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        mock, ours, theirs = free_port(), free_port(), free_port()
        upstream = f"http://127.0.0.1:{mock}/v1"
        commands = {
            "mock": (mock, [sys.executable, "-c", UPSTREAM, str(mock), str(asked.latency)]),
            "harnesslab serve": (
                ours,
                [
                    sys.executable,
                    "-m",
                    "harnesslab",
                    "serve",
                    f"{folder}/harness",
                    "--upstream",
                    upstream,
                    "--port",
                    str(ours),
                ],
            ),
        }
        if shutil.which("litellm"):
            config = Path(folder, "litellm.yaml")
            models = [
                {"model_name": "mock", "litellm_params": {"model": "openai/mock", "api_base": upstream, "api_key": "k"}}
            ]
            config.write_text(json.dumps({"model_list": models}), encoding="utf-8")
            commands["LiteLLM proxy"] = (theirs, ["litellm", "--config", str(config), "--port", str(theirs)])
        started = []
        try:
            for port, command in commands.values():
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                started.append(process)
                wait_for(port, process)
            print(
                f"{asked.sessions} sessions at once, {asked.rounds} requests each, upstream latency {1000 * asked.latency:g} ms"
            )
            print(f"{'to':<18} {'requests':>8} {'median ms':>12} {'p99 ms':>12} {'max ms':>12} {'CPU ms each':>12}")
            for (name, (port, _)), process in zip(commands.items(), started, strict=True):
                before = cpu_of(process)
                seconds = asyncio.run(
                    measure(f"http://127.0.0.1:{port}/v1/chat/completions", asked.sessions, asked.rounds)
                )
                cpu = (cpu_of(process) - before) / (asked.sessions * asked.rounds)
                print(row("mock, directly" if name == "mock" else name, seconds, asked.latency, cpu), flush=True)
            if "LiteLLM proxy" not in commands:
                print("LiteLLM proxy: litellm is not installed here (pip install 'litellm[proxy]')")
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait(30)


if __name__ == "__main__":
    main()
