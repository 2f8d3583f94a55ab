"""Files of a training: what is wrong in them is named by key, with a guess at what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnesslab.errors import ConfigError
from harnesslab.llm import LLM
from harnesslab.trainer.config import TrainFile, open_llm, read_config


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("labb: x\n", "key 'labb': unknown key; did you mean 'lab'"),
        ("settings: {serch: 1}\n", r"key 'settings\.serch': unknown key; did you mean 'search'"),
        ("settings: {search: many}\n", r"key 'settings\.search': .*integer"),
        ("llm: {model: x, optons: {}}\n", r"key 'llm\.optons': unknown key; did you mean 'options'"),
        ("llm: {model: x, local: y}\n", "key 'llm': give either 'local'"),
        ("llm: {}\n", "key 'llm': give either 'local'"),
        ("- 1\n", "key 'the file'"),
        ("lab: [\n", "not valid YAML"),
    ],
)
def test_a_wrong_key_is_named(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"t\.yaml.*" + told):
        read_config(file)


def test_a_server_s_options_may_hold_a_connection() -> None:
    options = {"base_url": "http://127.0.0.1:9/v1", "connection": {"timeout": 3, "concurrency": 2}}
    llm = open_llm(TrainFile.model_validate({"llm": {"model": "m", "options": options}}))
    assert isinstance(llm, LLM) and llm.concurrency == 2
    wrong = TrainFile.model_validate({"llm": {"model": "m", "options": {"connection": {"timeou": 3}}}})
    with pytest.raises(ConfigError, match=r"llm\.options: .*timeou"):
        open_llm(wrong)


def test_the_key_comes_from_the_variable_that_the_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one-000000")
    monkeypatch.setenv("MY_MODEL_KEY", "sk-from-the-variable-1")
    options = {"base_url": "http://localhost:1/v1", "api_key_env": "MY_MODEL_KEY"}
    config = TrainFile.model_validate({"lab": "x", "llm": {"model": "m", "options": options}})
    llm: Any = open_llm(config)
    assert llm._key == "sk-from-the-variable-1"
    assert "sk-from" not in repr(llm) and "sk-from" not in str(llm.identity)


@pytest.mark.parametrize("name", ["MY_MISSING_KEY", "", 3, None])
def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch, name: Any) -> None:
    monkeypatch.delenv("MY_MISSING_KEY", raising=False)
    options = {"base_url": "http://localhost:1/v1", "api_key_env": name}
    config = TrainFile.model_validate({"lab": "x", "llm": {"model": "m", "options": options}})
    if name is None:
        assert open_llm(config) is not None  # as if it were not written
        return
    with pytest.raises(ConfigError, match=f"api_key_env: the environment variable {name!r} is not set"):
        open_llm(config)
