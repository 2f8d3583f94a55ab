"""No secret is stored or shown, however it is written."""

from __future__ import annotations

import base64
import io
import json
import logging
import subprocess
import traceback
import zlib
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harnesslab as hl
from harnesslab.errors import BackboneError
from harnesslab.llm import LLM, Connection
from harnesslab.redaction import (
    _known,
    redact,
    remember,
    remember_settings,
    remember_url,
    scrub,
    scrub_head,
    scrub_json,
)
from tests.llm.fake_openai import Answer, FakeOpenAI, error, reply, serve

SECRET = "Zq7!x/Planted+Key_93aB"
remember(SECRET)

WRITINGS = {
    "raw": SECRET,
    "upper": SECRET.upper(),
    "url": quote(SECRET, safe=""),
    "lower url": quote(SECRET, safe="").lower(),
    "json": json.dumps(SECRET),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 within": base64.b64encode(b"user:" + SECRET.encode()).decode(),
    "base64 url": base64.urlsafe_b64encode(b"k=" + SECRET.encode()).decode(),
    "hex": SECRET.encode().hex(),
    "split": SECRET[:9] + "\n" + SECRET[9:],
    "split literal": SECRET[:9] + '" + "' + SECRET[9:],
    "escaped newline": SECRET[:9] + "\\n" + SECRET[9:],
    "repr": repr({"k": SECRET}),
}


@pytest.mark.parametrize("how", WRITINGS)
def test_a_secret_goes_however_it_is_written(how: str) -> None:
    cleaned = scrub(f"before {WRITINGS[how]} after")
    assert cleaned.startswith("before ") and cleaned.endswith(" after") and "***" in cleaned
    for size in (8, 12):
        assert all(WRITINGS["raw"][i : i + size] not in cleaned for i in range(len(SECRET) - size))
        assert all(
            WRITINGS["base64"][i : i + size] not in cleaned for i in range(4, len(WRITINGS["base64"]) - size - 4)
        )


@given(st.text(max_size=40))
def test_other_text_stays(text: str) -> None:
    assert scrub(text) == text or SECRET[:1].casefold() in text.casefold()


def test_json_keeps_its_shape() -> None:
    assert scrub_json({"a": [1, None, {"b": SECRET}], SECRET: ("x",)}) == {"a": [1, None, {"b": "***"}], "***": ("x",)}


def test_urls_and_settings_say_what_is_secret() -> None:
    remember_url("https://me:pw-of-the-proxy@host/proxy/abcdef0123456789/v1?sig=query-secret-1")
    remember_settings({"extra_headers": {"Authorization": "Bearer header-secret-1", "X-Trace": "harmless"}, "top_p": 1})
    told = redact("pw-of-the-proxy abcdef0123456789 query-secret-1 header-secret-1 harmless")
    assert told == "*** *** *** *** harmless"
    assert redact("sk-abcdefgh12345678 Bearer abcdefgh1234") == "*** Bearer ***"


@pytest.mark.parametrize("before", [0, 90, 100, 5_000, 5_095, 40_000])
@pytest.mark.parametrize("how", WRITINGS)
def test_the_head_of_a_long_text_holds_no_part_of_a_secret(how: str, before: int) -> None:
    text = "." * before + (WRITINGS[how] + ".") * 20 + "." * 40_000
    head = scrub_head(text, 5_100)
    assert len(head) <= 5_100 and head == scrub(text)[: len(head)] and head


@given(
    st.text("nrt \\+'\"\nıİſKkß" + SECRET, max_size=30), st.sampled_from(list(WRITINGS)), st.text("nrt \\n", max_size=9)
)
def test_what_the_pattern_finds_is_never_overlooked(before: str, how: str, after: str) -> None:
    pattern = _known[SECRET][0]
    text = before + WRITINGS[how] + after
    assert scrub(text) == pattern.sub("***", text)


def hostile(fake: FakeOpenAI) -> Any:
    """An endpoint that says the key wherever it can."""

    def answer(sent: dict[str, Any]) -> Answer:
        number = len(fake.bodies)
        if number % 7 == 3:
            return Answer(body=error(f"provider says {SECRET}"))
        call = {
            "function": {
                "name": SECRET,
                "arguments": json.dumps({SECRET: [SECRET, base64.b64encode(SECRET.encode()).decode()]}),
            }
        }
        message = reply(f"Action: look {SECRET}", model=f"m-{SECRET}", tool_calls=[call])
        return Answer(body={**message, "provider": SECRET})

    return answer


def test_a_planted_key_is_in_no_file_and_no_output_of_a_training(tmp_path: Path, caplog: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_API_KEY", "environment-secret-55")
    caplog.set_level(logging.DEBUG, "harnesslab")
    out = io.StringIO()
    secrets = [
        SECRET,
        SECRET.casefold(),
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode()[4:-4],
        "environment-secret-55",
    ]
    with serve() as fake, redirect_stdout(out), redirect_stderr(out):
        fake.answers = [hostile(fake)]
        url = fake.url.replace("/v1", f"/{quote(SECRET, safe='')}/v1")
        llm = LLM(
            "fake-1",
            url,
            SECRET,
            extra={"user_token": SECRET, "note": f"as {SECRET} says"},
            connection=Connection(timeout=5, patience=2, constrain="none", concurrency=2),
            cache=tmp_path / "recording.jsonl",
        )
        lab = hl.Lab.open(tmp_path / "lab", env="kitchen")
        trainer = hl.Trainer(lab=lab, llm=llm, settings={"search": 4, "gate": 4, "budget": 3, "progress": False})
        print(repr(llm), llm.identity, trainer)
        try:
            run = trainer.measure()
            print(run, run._repr_html_(), [episode.steps for episode in run], trainer.diagnose(run))
        except BackboneError as failure:
            print(failure, repr(failure))
            traceback.print_exc()
        print(llm.served, trainer.meter)
        assert len(fake.bodies) > 3 and any(sent["user_token"] == SECRET for sent in fake.bodies)
        llm.close()
    texts = {"output": out.getvalue() + caplog.text}
    for path in tmp_path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            texts[str(path)] = data.decode("utf-8", "replace") + _unpacked(data)
    objects = subprocess.run(
        ["git", "-C", str(tmp_path / "lab"), "cat-file", "--batch-all-objects", "--batch"],
        capture_output=True,
        check=True,
    )
    texts["git objects"] = objects.stdout.decode("utf-8", "replace")
    leaks = [name for name, text in texts.items() if any(secret.casefold() in text.casefold() for secret in secrets)]
    assert not leaks


def _unpacked(data: bytes) -> str:
    """Every zlib stream in a file: git's objects and the traces in the database."""
    found, start = [], 0
    while (start := data.find(b"x\x01", start)) >= 0:
        with suppress(zlib.error):
            found.append(zlib.decompressobj().decompress(data[start:]).decode("utf-8", "replace"))
        start += 1
    return "".join(found)
